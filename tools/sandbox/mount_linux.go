package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The handles of this file are descriptors of files (O_PATH) or of trees that
// are not mounted anywhere yet. Paths are resolved by whoever made the setup; a
// symbolic link in one has appeared since, and is not followed.

// openPlain opens a path without symbolic links in it.
func openPlain(path string) (int, error) {
	// With O_NOFOLLOW, too, a link at the end would be opened itself.
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err == nil {
		return fd, nil
	}
	if !errors.Is(err, unix.ENOSYS) {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// Kernels before 5.6.
	fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || real != filepath.Clean(path) {
		_ = unix.Close(fd)
		return -1, &os.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	}
	return fd, nil
}

// cloneTree returns a handle of what is mounted at a path and below.
func cloneTree(path string) (int, error) {
	fd, err := openPlain(path)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fd) }()
	return cloneHandle(fd, path)
}

// cloneHandle clones what a handle of a file refers to. The path is for errors.
func cloneHandle(fd int, path string) (int, error) {
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return -1, &os.PathError{Op: "clone", Path: path, Err: err}
	}
	return tree, nil
}

// attach mounts a tree on top of a path, and closes the handle.
func attach(tree int, path string) error {
	defer func() { _ = unix.Close(tree) }()
	fd, err := openPlain(path)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "mount", Path: path, Err: err}
	}
	return nil
}

// newTree makes a file system, not mounted anywhere yet.
func newTree(kind string, attrs int, options ...[2]string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open file system %s: %w", kind, err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, o := range options {
		if o[1] == "" {
			err = unix.FsconfigSetFlag(fs, o[0])
		} else {
			err = unix.FsconfigSetString(fs, o[0], o[1])
		}
		if err != nil {
			return -1, fmt.Errorf("set %s of %s: %w", o[0], kind, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("create file system %s: %w", kind, err)
	}
	tree, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return -1, fmt.Errorf("mount file system %s: %w", kind, err)
	}
	return tree, nil
}

const noPrivileges = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// memoryTree is an empty folder in memory.
func memoryTree(mode string) (int, error) {
	return newTree("tmpfs", noPrivileges, [2]string{"mode", mode})
}

// overlayTree is lower with a private upper layer, made below a folder.
func overlayTree(lower, folder string) (int, error) {
	upper, work := folder+".upper", folder+".work"
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return -1, err
		}
	}
	// The root of an overlay looks as that of its upper layer does.
	var st unix.Stat_t
	if err := unix.Stat(lower, &st); err != nil {
		return -1, &os.PathError{Op: "inspect", Path: lower, Err: err}
	}
	_ = unix.Chown(upper, int(st.Uid), int(st.Gid)) // only root can give folders away
	if err := unix.Chmod(upper, st.Mode&0o7777|0o700); err != nil {
		return -1, &os.PathError{Op: "chmod", Path: upper, Err: err}
	}
	// A layer is gone with its sandbox, so nothing of it need reach the disk:
	// without volatile, its end waits until all of the disk is written.
	return newTree("overlay", noPrivileges, [2]string{"userxattr", ""}, [2]string{"volatile", ""},
		[2]string{"lowerdir", overlayName(lower)}, [2]string{"upperdir", upper}, [2]string{"workdir", work})
}

// overlayName spells a lower folder, of which several are separated by colons.
func overlayName(path string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`).Replace(path)
}

// deafTree is a read-only copy of a folder in which sockets are other sockets
// than the ones that somebody listens on. What is mounted below is not in it.
func deafTree(lower, nothing string) (int, error) {
	return newTree("overlay", noPrivileges|unix.MOUNT_ATTR_RDONLY, [2]string{"userxattr", ""},
		[2]string{"lowerdir", overlayName(lower) + ":" + overlayName(nothing)})
}

// seal makes what is mounted at a path and below read-only, and what is on it
// neither a device nor privileged.
func seal(path string, f faults) error {
	return harden(path, noPrivileges|unix.MOUNT_ATTR_RDONLY, f)
}

// harden adds attributes to what is mounted at a path and below.
func harden(path string, attrs uint64, f faults) error {
	err := error(unix.ENOSYS)
	if f&noSetattr == 0 {
		err = unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: attrs})
	}
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, unix.ENOSYS):
		return &os.PathError{Op: "make read-only", Path: path, Err: err}
	}
	// Kernels before 5.12 change one mount at a time.
	points, err := mountPoints(path)
	if err != nil {
		return err
	}
	for _, p := range points {
		if err := remount(p, attrs); err != nil {
			return err
		}
	}
	return nil
}

// mountPoint is a line of mountinfo: a path and the flags that its mount has.
type mountPoint struct {
	path  string
	flags uintptr
}

// The flags that a mount keeps. Some of them cannot be given up in a user
// namespace, and a remount without them is refused.
var mountFlags = map[string]uintptr{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
	"noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME,
}

func remount(p mountPoint, attrs uint64) error {
	flags := p.flags | unix.MS_REMOUNT | unix.MS_BIND
	for attr, flag := range map[uint64]uintptr{
		unix.MOUNT_ATTR_RDONLY: unix.MS_RDONLY, unix.MOUNT_ATTR_NOSUID: unix.MS_NOSUID, unix.MOUNT_ATTR_NODEV: unix.MS_NODEV,
	} {
		if attrs&attr != 0 {
			flags |= flag
		}
	}
	err := unix.Mount("", p.path, "", flags, "")
	if err == nil {
		return nil
	}
	// A mount that another one hides is not reached, by commands neither.
	var st unix.Statfs_t
	if unix.Statfs(p.path, &st) != nil || attrs&unix.MOUNT_ATTR_RDONLY != 0 && st.Flags&unix.ST_RDONLY != 0 {
		return nil
	}
	return &os.PathError{Op: "make read-only", Path: p.path, Err: err}
}

// mountPoints returns what is mounted at a path and below.
func mountPoints(path string) ([]mountPoint, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []mountPoint
	for line := range strings.Lines(string(text)) {
		p, ok := parseMount(line)
		if ok && isBelow(path, p.path) {
			out = append(out, p)
		}
	}
	return out, nil
}

// parseMount reads "ID PARENT DEVICE ROOT POINT OPTIONS …".
func parseMount(line string) (mountPoint, bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 {
		return mountPoint{}, false
	}
	p := mountPoint{path: unescapeOctal(fields[4])}
	for option := range strings.SplitSeq(fields[5], ",") {
		p.flags |= mountFlags[option]
	}
	return p, true
}

// unescapeOctal reads the names of mountinfo, where a blank is \040.
func unescapeOctal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
