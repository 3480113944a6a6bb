//go:build !unix && !windows

package frame

import (
	"errors"
	"os"
)

// NewTerminal fails: nothing is known of terminals here.
func NewTerminal(*os.File) (Terminal, error) { return nil, errors.New("no terminals on this system") }

// CanDraw is false.
func CanDraw(*os.File) bool { return false }
