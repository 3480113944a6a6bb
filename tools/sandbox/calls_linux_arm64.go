package sandbox

import "golang.org/x/sys/unix"

// audit is what the kernel calls this architecture.
const audit = unix.AUDIT_ARCH_AARCH64

// refusedHere are the refused calls of this architecture alone: there are none.
var refusedHere []uint32
