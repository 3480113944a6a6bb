//go:build unix && !linux

package proc

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// kin are the processes of a command's group. Without /proc, a process that
// leaves the group is not found.
type kin struct{ leader int }

func newKin(leader int, _ string, _ int) kin { return kin{leader: leader} }

// living returns one member that stands for the whole group.
func (k *kin) living() []member {
	if syscall.Kill(-k.leader, 0) != nil {
		return nil
	}
	return []member{{pid: k.leader, group: k.leader, session: k.leader}}
}

// marked finds nothing here: the environment of other processes is not read.
type marked struct{ mark []byte }

func (marked) living() []member { return nil }

var ownSession = sync.OnceValue(func() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return -1
	}
	return sid
})
