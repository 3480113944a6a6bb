package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"drover/output/fault"
)

// minLandlock is the first version that is enough without namespaces: before it
// anybody could truncate any file.
const minLandlock = 3

// boxes tells the layers of sandboxes apart.
var boxes atomic.Int64

// openBox starts a helper at the highest level that the system has.
func openBox(ctx context.Context, o Options, r Rights) (*box, error) {
	if os.Args[0] == helperName && o.Helper == "" {
		// It would start itself for ever.
		return nil, unavailable("this program is to be the helper and does not call sandbox.Main", nil)
	}
	if o.Mode == Off || r.Off {
		return openOff(ctx, o)
	}
	if !filterSupported() {
		return nil, unavailable("the kernel cannot filter system calls on "+where(), nil)
	}
	s, warnings, err := plan(o, r)
	if err != nil {
		return nil, err
	}
	if o.faults&noLandlock == 0 {
		s.landlock = landlockABI()
	}
	b := &box{info: Info{Mode: o.Mode, Network: s.network, Warnings: warnings}}
	refused := error(&brokenError{text: "user namespaces are refused", unsupported: true})
	if o.faults&noUserNamespaces == 0 {
		s.level = LevelNamespaces
		refused = b.open(ctx, o, s)
	}
	var broken *brokenError
	if refused == nil || !errors.As(refused, &broken) || !broken.unsupported {
		return b, wrapOpen(refused)
	}
	if o.faults&noBubblewrap == 0 && wrapper() != "" {
		err := b.openBubblewrap(ctx, o, s, broken)
		if err == nil {
			return b, nil
		}
		var wrapped *brokenError
		if !errors.As(err, &wrapped) || !wrapped.unsupported {
			return nil, wrapOpen(err)
		}
		broken = &brokenError{text: broken.text + "; " + wrapped.text, unsupported: true}
	}
	if s.landlock < minLandlock {
		return nil, unavailable("this system refuses user namespaces to drover ("+broken.text+") and has no Landlock to fall back to", refused)
	}
	return b, wrapOpen(b.openLandlock(ctx, o, s, broken))
}

// wrapOpen makes an error of setting up one that reaches a person.
func wrapOpen(err error) error {
	var f *fault.Error
	if err == nil || errors.As(err, &f) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return unavailable(err.Error(), err)
}

// openBubblewrap has bubblewrap make the namespaces.
func (b *box) openBubblewrap(ctx context.Context, o Options, s *setup, why error) error {
	inner := *s
	inner.level = LevelBubblewrap
	if err := b.open(ctx, o, &inner); err != nil {
		return err
	}
	warnings := []string{"user namespaces are refused to drover (" + why.Error() + "): bubblewrap makes them instead"}
	if len(inner.open) > 0 {
		warnings = append(warnings, "commands can replace the link "+strings.Join(inner.open, ", ")+", which leads to a protected folder")
	}
	b.info.Warnings = append(b.info.Warnings, warnings...)
	return nil
}

// openLandlock does without namespaces, and says what is lost.
func (b *box) openLandlock(ctx context.Context, o Options, s *setup, why error) error {
	if len(o.DenyRead) > 0 {
		return unavailable("deny_read cannot be enforced for commands without user namespaces, which this system refuses to drover ("+why.Error()+")", why)
	}
	s.level = LevelLandlock
	b.info.Warnings = append(b.info.Warnings, "user namespaces are refused ("+why.Error()+
		"): commands can write to .git and other protected folders in the workspace, change modes and times of files outside, read what is typed at the user's terminals, and connect to the sockets of other programs")
	return b.open(ctx, o, s)
}

// open starts the helper for a setup whose level is chosen.
func (b *box) open(ctx context.Context, o Options, s *setup) error {
	folder, temporary, err := layersFolder(o.Layers)
	if err != nil {
		return unavailable("no folder for private layers", err)
	}
	s.layers, s.memory, s.private = folder, o.Layers == "", nil
	if s.level == LevelLandlock {
		s.private = []string{folder}
	} else if slices.ContainsFunc(s.of(writable, lifted), func(root string) bool { return isBelow(root, folder) }) {
		s.add(masked, realPath(folder))
		s.order()
	}
	c, refused, err := start(ctx, o.Helper, s, o.Early)
	if err != nil {
		if temporary {
			removeLayers(folder)
		}
		return err
	}
	b.info.Level, b.launcher, b.bounds = s.level, c, boundsOf(o, s)
	if s.level == LevelLandlock {
		b.bounds.denies = forbidden
	}
	b.close, b.remove = c.close, func() { removeLayers(folder) }
	b.describe(o, s, refused)
	return nil
}

// layersFolder makes a folder for one helper.
func layersFolder(base string) (folder string, temporary bool, err error) {
	if base == "" {
		folder, err = os.MkdirTemp("", "drover-sandbox-")
		return realPath(folder), true, err
	}
	folder = filepath.Join(base, strconv.FormatInt(boxes.Add(1), 10))
	removeLayers(folder) // of a run that was killed
	return realPath(folder), true, makePrivate(folder)
}

// describe says what is not enforced, and what commands have to know.
func (b *box) describe(o Options, s *setup, refused []string) {
	warn := func(text string) { b.info.Warnings = append(b.info.Warnings, text) }
	switch {
	case s.landlock == 0:
		warn("this kernel has no Landlock: commands can reach abstract sockets and signal other processes of the user")
	case s.landlock < 6:
		warn("this kernel's Landlock is old: commands can reach abstract sockets and signal other processes of the user")
	}
	b.environ = append(b.environ, "DROVER_SANDBOX_LEVEL="+string(s.level))
	if !s.network {
		b.environ = append(b.environ, "DROVER_SANDBOX_NETWORK_DISABLED=1")
	}
	written := s.of(layered, empty, writable, lifted)
	private := "/tmp/drover-private"
	if s.level == LevelLandlock {
		written = s.of(writable, lifted)
		private = filepath.Join(s.layers, "private")
		tmp := filepath.Join(s.layers, "tmp")
		_ = makePrivate(tmp) // a command that needs it says so
		b.environ = append(b.environ, "TMPDIR="+tmp)
	}
	written = slices.DeleteFunc(written, func(path string) bool { return slices.Contains(refused, path) })
	if s.level != LevelLandlock {
		written = append(written, s.of(temporaryLayer)...)
	}
	b.environ = append(b.environ, substitutes(o.Environ, private, func(path string) bool { return belowAny(written, path) })...)
	if len(refused) > 0 {
		warn("no private layer for " + strings.Join(refused, ", ") + ": commands use empty private folders instead")
	}
}

// openOff starts a helper that bounds nothing.
func openOff(ctx context.Context, o Options) (*box, error) {
	c, _, err := start(ctx, o.Helper, &setup{level: LevelNone, network: true}, nil)
	if err != nil {
		return nil, wrapOpen(err)
	}
	return &box{
		info: Info{Mode: Off, Level: LevelNone, Network: true}, launcher: c,
		environ: []string{"DROVER_SANDBOX_LEVEL=" + string(LevelNone)}, close: c.close,
	}, nil
}
