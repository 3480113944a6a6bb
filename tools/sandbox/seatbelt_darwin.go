package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"drover/tools/internal/proc"
)

// boxes tells the private folders of sandboxes apart.
var boxes atomic.Int64

// openBox makes a profile. Commands are started by sandbox-exec, which becomes
// the command, so drover itself is their parent.
func openBox(_ context.Context, o Options, r Rights) (*box, error) {
	if o.Mode == Off || r.Off {
		return openDirect(), nil
	}
	if !exists(sandboxExec) {
		return nil, unavailable("this system has no "+sandboxExec, nil)
	}
	folder, err := layersFolder(o.Layers)
	if err != nil {
		return nil, unavailable("no folder for temporary files", err)
	}
	tmp, private := filepath.Join(folder, "tmp"), filepath.Join(folder, "private")
	for _, dir := range []string{tmp, private} {
		if err := makePrivate(dir); err != nil {
			return nil, unavailable("no folder for temporary files", err)
		}
	}
	s := seatbeltOf(o, r, folder)
	b := &box{
		info:     Info{Mode: o.Mode, Level: LevelSeatbelt, Network: s.network},
		environ:  []string{"DROVER_SANDBOX_LEVEL=" + string(LevelSeatbelt), "TMPDIR=" + tmp},
		launcher: seatbeltLauncher{s},
		bounds: bounds{
			on: true, mode: o.Mode, network: s.network, writable: slices.Concat(s.writable, s.lifted),
			protected: s.protected, masked: s.masked, free: s.lifted, denies: forbidden,
			could: func(string) bool { return true },
		},
		close:  func(time.Duration) int { return 0 },
		remove: func() { removeLayers(folder) },
	}
	if !s.network {
		b.environ = append(b.environ, "DROVER_SANDBOX_NETWORK_DISABLED=1")
	}
	b.environ = append(b.environ, substitutes(o.Environ, private, func(path string) bool { return belowAny(s.writable, path) })...)
	return b, nil
}

func layersFolder(base string) (string, error) {
	if base == "" {
		folder, err := os.MkdirTemp("", "drover-sandbox-")
		return realPath(folder), err
	}
	folder := filepath.Join(base, strconv.FormatInt(boxes.Add(1), 10))
	removeLayers(folder) // of a run that was killed
	return realPath(folder), makePrivate(folder)
}

// seatbeltOf decides what a profile is made of.
func seatbeltOf(o Options, r Rights, folder string) *seatbelt {
	s := &seatbelt{writable: []string{folder}, network: o.Network || r.Network}
	for _, path := range o.Writable {
		s.writable = append(s.writable, realPath(path))
	}
	for _, path := range r.Write {
		real := realPath(path)
		s.lifted = append(s.lifted, real)
		for _, dir := range gitFolders(real) {
			s.lifted = append(s.lifted, realPath(dir))
		}
	}
	for _, path := range o.Protected {
		named := filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
		s.protected = append(s.protected, named, realPath(path))
		for _, dir := range gitFolders(named) {
			s.protected = append(s.protected, realPath(dir))
		}
	}
	slices.Sort(s.protected)
	s.protected = slices.Compact(s.protected)
	// Unlike mounts, a profile can name what does not exist yet, so that the
	// fixed beginning of a glob would do; the files that exist are more exact.
	found, _ := denied(o.DenyRead, append(slices.Clone(o.Writable), o.Cwd), lookup(o.Environ)("HOME"))
	for _, path := range found {
		if !slices.ContainsFunc(r.Read, func(free string) bool { return isBelow(realPath(free), path) }) {
			s.masked = append(s.masked, path)
		}
	}
	return s
}

// seatbeltLauncher puts sandbox-exec in front of commands.
type seatbeltLauncher struct{ profile *seatbelt }

// Launch starts a command in the profile.
func (l seatbeltLauncher) Launch(order proc.Launch) (proc.Child, error) {
	path, err := proc.LookPath(order.Argv[0], order.Dir, order.Env)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(order.Argv[0], "/") {
		order.Argv = append([]string{path}, order.Argv[1:]...)
	}
	order.Argv = l.profile.arguments(order.Argv)
	return proc.Direct().Launch(order)
}

// Pid is 0: commands are drover's own children.
func (seatbeltLauncher) Pid() int { return 0 }
