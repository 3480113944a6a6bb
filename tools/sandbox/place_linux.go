package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// stage builds the tree that commands see, in the helper's own mount namespace.
// Everything is read-only at first. What is written all the same is taken aside
// before, and laid on top after.
type stage struct {
	setup *setup
	// aside are the trees of the placements that have one, by index.
	aside map[int]int
	// devices are the trees of the device files.
	devices map[string]int
	// blankFile and blankFolder are handles of what masks others. Their paths
	// may be hidden by a layer when they are needed.
	blankFile, blankFolder int
	// refused are the folders that get no layer.
	refused []string
	// write is what Landlock has to permit.
	write []string
}

// errUnsupported says that the very first step was refused, so that nothing of
// all this is to be had here.
var errUnsupported = errors.New("mounts are refused")

// place makes all placements. It returns which folders got no layer, and what
// commands can write.
func place(s *setup) (refused, write []string, err error) {
	st := &stage{setup: s, aside: map[int]int{}, devices: map[string]int{}}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errUnsupported, err)
	}
	for _, step := range []func() error{st.takeAside, st.makeLayers, st.sealAll, st.layDevices, st.layAll} {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	return st.refused, st.write, nil
}

// takeAside clones what stays writable.
func (st *stage) takeAside() error {
	for i, p := range st.setup.placements {
		if p.kind != writable && p.kind != lifted && p.kind != pinned {
			continue
		}
		tree, err := cloneTree(p.path)
		if err != nil {
			return fmt.Errorf("writable folder: %w", err)
		}
		st.aside[i] = tree
	}
	for _, path := range devices {
		// A link leads to one of the others.
		if tree, err := cloneTree(path); err == nil {
			st.devices[path] = tree
		}
	}
	return nil
}

// scratch is the folder in which the helper keeps what it mounts: the upper
// layers if they are in memory, and the file and folder that mask others.
func (st *stage) scratch(name string) string { return filepath.Join(st.setup.layers, name) }

// makeLayers makes the layers, and the scratch folder, which hides the layers
// on disk from commands.
func (st *stage) makeLayers() error {
	if st.setup.memory {
		if err := st.mountScratch(); err != nil {
			return err
		}
	}
	for i, p := range st.setup.placements {
		if p.kind != layered && p.kind != temporaryLayer {
			continue
		}
		tree, err := st.layer(i, p.path)
		if err != nil && p.kind == temporaryLayer {
			st.refused = append(st.refused, p.path)
			tree, err = st.folder(i)
		}
		if err == nil {
			st.aside[i] = tree
		}
	}
	if !st.setup.memory {
		if err := st.mountScratch(); err != nil {
			return err
		}
	}
	st.layersInMemory()
	return st.makeBlanks()
}

// layersInMemory is the second try for folders whose layers cannot be on disk.
func (st *stage) layersInMemory() {
	for i, p := range st.setup.placements {
		if _, done := st.aside[i]; done || p.kind != layered {
			continue
		}
		tree, err := st.layer(i, p.path)
		if err != nil {
			st.refused = append(st.refused, p.path)
			continue
		}
		st.aside[i] = tree
	}
}

// folder makes an empty folder that everybody can write.
func (st *stage) folder(i int) (int, error) {
	path := st.scratch("folder" + strconv.Itoa(i))
	if err := os.Mkdir(path, 0o700); err != nil {
		return -1, err
	}
	if err := unix.Chmod(path, 0o1777); err != nil {
		return -1, err
	}
	return cloneTree(path)
}

// makeBlanks makes the file and folder that mask others, and the folders in
// which sockets are deaf.
func (st *stage) makeBlanks() (err error) {
	file, folder := st.scratch("file"), st.scratch("folder")
	if err := os.Mkdir(folder, 0o000); err != nil {
		return err
	}
	if err := os.WriteFile(file, nil, 0o000); err != nil {
		return err
	}
	if st.blankFolder, err = openPlain(folder); err != nil {
		return err
	}
	if st.blankFile, err = openPlain(file); err != nil {
		return err
	}
	for i, p := range st.setup.placements {
		if p.kind != deaf || st.setup.faults&noOverlay != 0 {
			continue
		}
		if tree, err := deafTree(p.path, folder); err == nil {
			st.aside[i] = tree
		}
	}
	return nil
}

func (st *stage) layer(i int, path string) (int, error) {
	if st.setup.faults&noOverlay != 0 {
		return -1, unix.EINVAL
	}
	return overlayTree(path, st.scratch("layer"+strconv.Itoa(i)))
}

func (st *stage) mountScratch() error {
	tree, err := memoryTree("0711")
	if err != nil {
		return err
	}
	return attach(tree, st.setup.layers)
}

func (st *stage) sealAll() error {
	if st.setup.whole {
		st.write = append(st.write, "/")
		return nil
	}
	return seal("/", st.setup.faults)
}

// layDevices brings the device files back that commands can use: all others
// are of no use on a mount without devices, whoever may open them.
func (st *stage) layDevices() error {
	st.newTerminals()
	for path, tree := range st.devices {
		if err := attach(tree, path); err != nil {
			return err
		}
		// What is written to a device goes there all the same; its mode, owner
		// and times are those of the machine, and root could change them.
		if err := harden(path, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_RDONLY, st.setup.faults); err != nil {
			return err
		}
	}
	return nil
}

// newTerminals gives commands terminals of their own: the device that makes them
// finds those beside it only on the file system that they are on. The terminals of
// the machine are never theirs to open: whoever opens the user's reads what is
// typed there and writes control sequences to it. Where there are no new ones to
// be had, commands have none.
func (st *stage) newTerminals() {
	tree, err := newTree("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, [2]string{"ptmxmode", "0666"}, [2]string{"mode", "0620"})
	if err != nil {
		return
	}
	if attach(tree, terminals) != nil {
		return
	}
	if maker, err := cloneTree(terminals + "/ptmx"); err == nil {
		if old, found := st.devices[ptmx]; found {
			_ = unix.Close(old)
		}
		st.devices[ptmx] = maker
	}
}

func (st *stage) layAll() error {
	for i, p := range st.setup.placements {
		if err := st.lay(i, p); err != nil {
			return err
		}
	}
	return nil
}

func (st *stage) lay(i int, p placement) error {
	tree, taken := st.aside[i]
	switch p.kind {
	case layered, temporaryLayer:
		if !taken {
			return nil // left as it is, read-only
		}
		st.write = append(st.write, p.path)
		return st.attachIfThere(tree, p.path)
	case empty:
		tree, err := memoryTree("1777")
		if err != nil {
			return err
		}
		st.write = append(st.write, p.path)
		return st.attachIfThere(tree, p.path)
	case deaf:
		if !taken {
			return st.maskSockets(p.path)
		}
		return st.attachIfThere(tree, p.path)
	case writable, lifted, pinned:
		return st.layWritable(tree, p.path)
	case protected:
		return st.layProtected(p.path)
	case linked:
		return layLink(p.path)
	case masked:
		return st.layMask(p.path)
	}
	return fmt.Errorf("%w: placement %d", errFrame, p.kind)
}

// attachIfThere does nothing where another placement has hidden the path.
func (st *stage) attachIfThere(tree int, path string) error {
	err := attach(tree, path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

func (st *stage) layWritable(tree int, path string) error {
	// A layer shows what is below its folder, but nothing that is mounted there.
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if err := makePlace(tree, path); err != nil {
			return err
		}
	}
	if err := attach(tree, path); err != nil {
		return err
	}
	st.write = append(st.write, path)
	return harden(path, noPrivileges, st.setup.faults)
}

// makePlace makes a file or folder on which a tree can be mounted.
func makePlace(tree int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return &os.PathError{Op: "inspect", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

func (st *stage) layProtected(path string) error {
	tree, err := cloneTree(path)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return nil // a name that does not exist is watched instead
	case err != nil:
		return fmt.Errorf("protected folder: %w", err)
	}
	if err := attach(tree, path); err != nil {
		return err
	}
	return seal(path, st.setup.faults)
}

// layLink mounts a symbolic link on itself: what is mounted on cannot be removed,
// replaced or moved, whatever it is.
func layLink(path string) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil // hidden already
	}
	if err != nil {
		return fmt.Errorf("protected link: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	defer func() { _ = unix.Close(fd) }()
	tree, err := cloneHandle(fd, path)
	if err != nil {
		return fmt.Errorf("protected link: %w", err)
	}
	defer func() { _ = unix.Close(tree) }()
	if err := unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("protected link: %w", &os.PathError{Op: "mount", Path: path, Err: err})
	}
	return nil
}

func (st *stage) layMask(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil // hidden already
	}
	if err != nil {
		return err
	}
	source := st.blankFile
	if info.IsDir() {
		source = st.blankFolder
	}
	tree, err := cloneHandle(source, path)
	if err != nil {
		return err
	}
	if err := attach(tree, path); err != nil {
		return err
	}
	return seal(path, st.setup.faults)
}

// socketDepth and socketCount bound the search for sockets.
const (
	socketDepth = 4
	socketCount = 256
)

// maskSockets hides the sockets of a folder one by one, where no overlay makes
// all of them deaf.
func (st *stage) maskSockets(root string) error {
	sockets, many := socketsBelow(root)
	if many {
		return st.layMask(root)
	}
	for _, path := range sockets {
		if err := st.layMask(path); err != nil {
			return err
		}
	}
	return nil
}
