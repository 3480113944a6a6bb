//go:build !linux

package search

import "os"

// beneath has no quick way here.
type beneath struct{}

func openBeneath(*os.Root) beneath { return beneath{} }

func (beneath) ok() bool { return false }
func (beneath) close()   {}

func (beneath) file(string) (file, int64, error) { return file{}, 0, errSpecial }
func (beneath) folder(string) (*os.File, error)  { return nil, errSpecial }
