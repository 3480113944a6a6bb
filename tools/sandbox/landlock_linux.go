package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock is enforced in one thread, which then becomes the helper by exec, so
// that nothing of the helper was ever outside of it.

const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// landlockFile are the rights that a file can have.
	landlockFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// landlockFirst are the rights of the first version.
	landlockFirst = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
)

// devices are the files in /dev that commands can use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", ptmx}

// ptmx makes terminals in the folder beside it.
const ptmx = "/dev/ptmx"

// terminals is the folder of pseudo terminals.
const terminals = "/dev/pts"

// devicesAt are the device files that commands can write. Without namespaces the
// terminals are those of the machine, the user's among them.
func devicesAt(level Level) []string {
	list := slices.Clone(devices)
	if level == LevelLandlock {
		return slices.DeleteFunc(list, func(path string) bool { return path == ptmx })
	}
	return append(list, terminals)
}

// landlockABI returns the version of Landlock in the kernel, 0 for none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// landlockRules returns what is restricted at all by a version. Connections to
// sockets in the file system (version 9) are restricted without any exception:
// those of the commands themselves need none.
func landlockRules(abi int, network bool) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockFirst}
	if abi >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 && !network {
		attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if abi >= 9 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	if abi >= 10 && !network {
		attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
	}
	return attr
}

// restrict enforces Landlock in the calling thread, for good. It needs
// no_new_privs.
func restrict(abi int, network bool, write, devices []string) error {
	attr := landlockRules(abi, network)
	return restrictTo(attr, func(rules int) error { return permitAll(rules, attr, write, devices) })
}

// restrictTo enforces rules in the calling thread, after fill has added some.
func restrictTo(attr unix.LandlockRulesetAttr, fill func(rules int) error) error {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("create rules: %w", errno)
	}
	rules := int(fd)
	defer func() { _ = unix.Close(rules) }() // enforced or not by then
	if err := fill(rules); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return fmt.Errorf("enforce rules: %w", errno)
	}
	return nil
}

// restrictSignals keeps signals inside, in the calling thread, and nothing else:
// rules that do not permit moves and links from folder to folder refuse them,
// even rules that are not about files.
func restrictSignals() error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER, Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	return restrictTo(attr, func(rules int) error { return permit(rules, "/", unix.LANDLOCK_ACCESS_FS_REFER) })
}

// permitAll adds the rules about files.
func permitAll(rules int, attr unix.LandlockRulesetAttr, write, devices []string) error {
	if err := permit(rules, "/", landlockRead); err != nil {
		return err
	}
	all := attr.Handled_access_fs &^ (unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX)
	for _, path := range write {
		if err := permit(rules, path, all); err != nil {
			return err
		}
	}
	device := attr.Handled_access_fs & landlockFile
	for _, path := range devices {
		if err := permit(rules, path, device|unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// permit adds a rule about a file or folder.
func permit(rules int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }() // the rule keeps the file
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("inspect %q: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landlockFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("add rule for %q: %w", path, errno)
	}
	return nil
}
