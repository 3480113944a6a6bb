package sandbox

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probe runs inside the sandbox, as a command would, and prints one line for
// each thing it tries: its name, and "ok" or the name of the error.
func probe(args []string) int {
	values := map[string]string{}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		values[k] = v
	}
	parent, _ := strconv.Atoi(values["parent"])
	helper := os.Getppid()
	runtime.LockOSThread()
	tell := func(name string, err error) {
		if err == nil {
			fmt.Println(name, "ok")
			return
		}
		var errno syscall.Errno
		if e, ok := err.(*os.PathError); ok {
			err = e.Err
		}
		if e, ok := err.(*os.SyscallError); ok {
			err = e.Err
		}
		if e, ok := err.(syscall.Errno); ok {
			errno = e
		}
		if errno != 0 {
			fmt.Println(name, unix.ErrnoName(errno))
			return
		}
		fmt.Println(name, err)
	}
	call := func(name string, number uintptr, a ...uintptr) {
		var x [6]uintptr
		copy(x[:], a)
		_, _, errno := unix.RawSyscall6(number, x[0], x[1], x[2], x[3], x[4], x[5])
		if errno == 0 {
			tell(name, nil)
			return
		}
		tell(name, errno)
	}
	socket := func(name string, family, kind int) {
		fd, err := unix.Socket(family, kind, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		tell(name, err)
	}
	socket("unix", unix.AF_UNIX, unix.SOCK_STREAM)
	socket("tcp", unix.AF_INET, unix.SOCK_STREAM)
	socket("tcp6", unix.AF_INET6, unix.SOCK_STREAM)
	socket("udp", unix.AF_INET, unix.SOCK_DGRAM)
	socket("raw", unix.AF_INET, unix.SOCK_RAW)
	socket("packet", unix.AF_PACKET, unix.SOCK_RAW)
	socket("netlink", unix.AF_NETLINK, unix.SOCK_RAW)
	socket("vsock", unix.AF_VSOCK, unix.SOCK_STREAM)
	socket("alg", unix.AF_ALG, unix.SOCK_SEQPACKET)
	call("high-family", unix.SYS_SOCKET, 1<<32|unix.AF_INET, unix.SOCK_STREAM)
	for _, name := range []string{"abstract", "path-socket"} {
		c, err := net.Dial("unix", values[name])
		if err == nil {
			_ = c.Close()
			tell(name, nil)
			continue
		}
		fmt.Println(name, "refused")
	}
	tell("signal-parent", unix.Kill(parent, 0))
	tell("signal-helper", unix.Kill(helper, 0))
	tell("ptrace-parent", unix.PtraceAttach(parent))
	tell("ptrace-helper", unix.PtraceAttach(helper))
	one := []byte{0}
	local := []unix.Iovec{{Base: &one[0], Len: 1}}
	_, err := unix.ProcessVMReadv(parent, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&one[0])), Len: 1}}, 0)
	tell("vm-read-parent", err)
	pidfd, err := unix.PidfdOpen(parent, 0)
	if err == nil {
		_, err = unix.PidfdGetfd(pidfd, 0, 0)
	}
	tell("getfd-parent", err)
	for name, file := range map[string]string{
		"parent-mem": fmt.Sprintf("/proc/%d/mem", parent), "parent-environ": fmt.Sprintf("/proc/%d/environ", parent),
		"parent-root": fmt.Sprintf("/proc/%d/root/etc", parent), "parent-cwd": fmt.Sprintf("/proc/%d/cwd/.", parent),
		"parent-fd":  fmt.Sprintf("/proc/%d/fd/1", parent),
		"helper-mem": fmt.Sprintf("/proc/%d/mem", helper), "helper-fd": fmt.Sprintf("/proc/%d/fd/3", helper),
	} {
		f, err := os.Open(file)
		if err == nil {
			_ = f.Close()
		}
		tell(name, err)
	}
	call("io-uring", unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(new([120]byte))))
	call("bpf", unix.SYS_BPF, 0, uintptr(unsafe.Pointer(new([128]byte))), 128)
	call("userfaultfd", unix.SYS_USERFAULTFD, 0)
	call("keyctl", unix.SYS_KEYCTL, 0, ^uintptr(3), 0)
	call("kcmp", unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(os.Getpid()), 0, 0, 0)
	call("perf", unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0)
	tell("mount", unix.Mount("none", "/mnt", "tmpfs", 0, ""))
	tell("remount", unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	tell("umount", unix.Unmount("/tmp", unix.MNT_DETACH))
	_, err = unix.Fsopen("tmpfs", 0)
	tell("fsopen", err)
	_, err = unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE)
	tell("open-tree", err)
	tell("mount-setattr", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
	tell("chroot", unix.Chroot("/tmp"))
	tell("unshare-user", unix.Unshare(unix.CLONE_NEWUSER))
	tell("unshare-mount", unix.Unshare(unix.CLONE_NEWNS))
	call("clone-user", unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD))
	call("clone3", unix.SYS_CLONE3, uintptr(unsafe.Pointer(new([88]byte))), 88)
	tell("setns", unix.Setns(0, 0))
	call("tiocsti", unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&one[0])))
	call("tiocsti-high", unix.SYS_IOCTL, 0, 1<<32|unix.TIOCSTI, uintptr(unsafe.Pointer(&one[0])))
	call("open-by-handle", unix.SYS_OPEN_BY_HANDLE_AT, 0, uintptr(unsafe.Pointer(new([128]byte))), 0)
	if runtime.GOARCH == "amd64" {
		call("x32", 0x40000000|unix.SYS_GETPID)
	}
	tell("capability", unix.Prctl(unix.PR_CAPBSET_READ, unix.CAP_SYS_ADMIN, 0, 0, 0))
	held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_ADMIN, 0, 0, 0)
	fmt.Println("bounding-sys-admin", held, err)
	held, err = unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_DAC_READ_SEARCH, 0, 0, 0)
	fmt.Println("bounding-dac-read-search", held, err)
	// The Go runtime keeps some of its own open.
	entries, _ := os.ReadDir("/proc/self/fd")
	open := ""
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.Contains(target, "anon_inode") && !strings.HasPrefix(target, "/proc/") && !strings.HasPrefix(target, "/sys/fs/cgroup/") {
			open += e.Name() + ","
		}
	}
	fmt.Println("descriptors", open)
	return 0
}
