//go:build !unix

package approver

import (
	"context"
	"errors"
	"os"

	"drover/output/fault"
)

// Descriptor is not to be had here.
func Descriptor(int, Notice) (Approver, error) { return nil, unavailable("--approvals-fd") }

// KeepFromChildren does nothing where there are no such channels.
func KeepFromChildren(int) {}

// Socket is not to be had here.
func Socket(string, func(pid int) bool, Notice) (Approver, error) {
	return nil, unavailable("--approvals-socket")
}

func unavailable(flag string) error {
	return &fault.Error{Code: "usage", What: flag + " cannot be used", Why: "this system has no such channels",
		Fix: "use --approver", Exit: fault.Usage}
}

// Lines is not to be had here.
func Lines(*os.File) LineReader { return nobody{} }

type nobody struct{}

func (nobody) Discard() {}

func (nobody) ReadLine(context.Context) (string, error) {
	return "", errors.New("this system has no terminal that could be read")
}
