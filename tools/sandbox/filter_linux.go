package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The system calls that commands cannot make. The filter is written out instead
// of being made from names, for two reasons: a call of another architecture must
// not pass because its numbers mean something else, and the kernel looks at the
// lower half of some arguments only, so that comparing all of it is no
// comparison.

// families are the address families that commands may use with the network. All
// others are drivers, tunnels and virtual machines.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// The places of struct seccomp_data. Both architectures are little-endian.
const (
	dataCall = 0
	dataArch = 4
	dataArgs = 16
)

const (
	answerPermit = uint32(unix.SECCOMP_RET_ALLOW)
	answerRefuse = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	answerAbsent = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)
	answerKill   = uint32(unix.SECCOMP_RET_KILL_PROCESS)
)

// assemble returns the filter. It refuses more calls, whatever their arguments.
func assemble(network bool, more ...uint32) ([]bpf.Instruction, error) {
	if audit == 0 {
		return nil, fmt.Errorf("no system call filter for %s", runtime.GOARCH)
	}
	prog := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: audit, SkipTrue: 1},
		bpf.RetConstant{Val: answerKill},
		bpf.LoadAbsolute{Off: dataCall, Size: 4},
	}
	if runtime.GOARCH == "amd64" {
		const x32 = 0x40000000 // set in the numbers of the 32-bit pointer ABI
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32, SkipFalse: 1}, bpf.RetConstant{Val: answerAbsent})
	}
	for _, list := range [3][]uint32{refusedCalls, refusedHere, more} {
		for _, call := range list {
			prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipFalse: 1}, bpf.RetConstant{Val: answerRefuse})
		}
	}
	// The C library falls back to clone, whose flags can be seen.
	prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE3, SkipFalse: 1}, bpf.RetConstant{Val: answerAbsent})
	// A user namespace would give capabilities.
	prog = append(prog, argument(unix.SYS_CLONE, 0, bpf.JumpBitsSet, answerRefuse, answerPermit, unix.CLONE_NEWUSER)...)
	prog = append(prog, argument(unix.SYS_UNSHARE, 0, bpf.JumpBitsSet, answerRefuse, answerPermit,
		unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWNET, unix.CLONE_NEWPID, unix.CLONE_NEWIPC, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP)...)
	// Both type into the terminal of somebody else.
	prog = append(prog, argument(unix.SYS_IOCTL, 1, bpf.JumpEqual, answerRefuse, answerPermit, unix.TIOCSTI, unix.TIOCLINUX)...)
	allowed := families[:1]
	if network {
		allowed = families
	}
	prog = append(prog, argument(unix.SYS_SOCKET, 0, bpf.JumpEqual, answerPermit, answerRefuse, allowed...)...)
	prog = append(prog, argument(unix.SYS_SOCKETPAIR, 0, bpf.JumpEqual, answerPermit, answerRefuse, unix.AF_UNIX)...)
	return append(prog, bpf.RetConstant{Val: answerPermit}), nil
}

// argument decides one call by the lower half of an argument, which is all that
// the kernel reads of it: match if a value does, other if none does.
func argument(call, index uint32, test bpf.JumpTest, match, other uint32, values ...uint32) []bpf.Instruction {
	body := []bpf.Instruction{bpf.LoadAbsolute{Off: dataArgs + 8*index, Size: 4}}
	for _, v := range values {
		body = append(body, bpf.JumpIf{Cond: test, Val: v, SkipFalse: 1}, bpf.RetConstant{Val: match})
	}
	body = append(body, bpf.RetConstant{Val: other})
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipFalse: uint8(len(body))}}, body...)
}

// filterCalls installs the filter in the calling thread, for good. It needs
// no_new_privs.
func filterCalls(network bool, more ...uint32) error {
	prog, err := assemble(network, more...)
	if err != nil {
		return err
	}
	raw, err := bpf.Assemble(prog)
	if err != nil {
		return err
	}
	list := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		list[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// filterSupported tells whether the kernel can filter calls on this
// architecture.
func filterSupported() bool {
	action := answerKill
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return audit != 0 && errno == 0
}
