package sandbox

import "golang.org/x/sys/unix"

// audit is what the kernel calls this architecture.
const audit = unix.AUDIT_ARCH_X86_64

// refusedHere are the refused calls of this architecture alone.
var refusedHere = []uint32{
	unix.SYS_MODIFY_LDT, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_USELIB,
	unix.SYS_CREATE_MODULE, unix.SYS__SYSCTL,
}
