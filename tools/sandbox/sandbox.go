// Package sandbox bounds what the commands of a run can do.
//
// Open sets a sandbox up, or says why there is none; its Launcher starts
// commands in it. The policy decides what is attempted, the sandbox what can
// happen. Refusals infers from what a command printed that the sandbox stood in
// its way.
//
// On Linux there is a helper process for every set of Rights: this program
// again, which Main recognizes. It builds the tree that commands see in user and
// mount namespaces of its own (place_linux.go), gives up every right that
// commands must not have (confine_linux.go), starts itself anew, and then starts
// commands and reaps whatever becomes of them (serve_linux.go). Nothing is ever
// started outside instead. When drover is gone, the helper ends everything below
// it. On macOS commands are started by sandbox-exec. Other systems have no
// sandbox, only the mode Off.
//
// What is bounded: writes, but for the writable roots and private layers over
// the folders for temporary files and the caches; reads of DenyRead; the
// network; sockets of other programs, and signals to them. What is not: reads of
// anything else, and the use of memory, processor and disk.
//
// The package reads the environment that it is given and the file system. It
// writes below Options.Layers, or in a new folder for temporary files.
package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"drover/output/fault"
	"drover/tools/internal/proc"
)

// Mode is how far the sandbox goes.
type Mode string

// The modes.
const (
	// ReadOnly commands write nothing but their private folders.
	ReadOnly Mode = "read-only"
	// WorkspaceWrite commands write the writable roots, too.
	WorkspaceWrite Mode = "workspace-write"
	// Off is no sandbox.
	Off Mode = "off"
)

// Level is what the kernel enforces, from nothing to everything.
type Level string

// The levels.
const (
	// LevelNone is no enforcement at all.
	LevelNone Level = "none"
	// LevelLandlock is Landlock and seccomp without namespaces: the protected
	// folders below a writable root can be written, and /tmp and the caches
	// are private folders instead of layers.
	LevelLandlock Level = "landlock"
	// LevelBubblewrap is everything, but set up by bubblewrap, because drover
	// itself may not: there are no layers, so that the caches of the user are
	// empty or read-only, and a link to a protected folder can be replaced.
	LevelBubblewrap Level = "bubblewrap"
	// LevelNamespaces is everything.
	LevelNamespaces Level = "namespaces"
	// LevelSeatbelt is the sandbox of macOS.
	LevelSeatbelt Level = "seatbelt"
)

// Options say what the commands of a run may touch. Paths are absolute.
type Options struct {
	Mode Mode
	// Cwd is the folder of the run.
	Cwd string
	// Writable are the writable roots; ReadOnly has none.
	Writable []string
	// Protected are names below the roots that stay read-only, whether they
	// exist or not (.git, .drover, .agents of every root, drover's own state).
	Protected []string
	// DenyRead are globs (doublestar) of files that no command may read. A
	// relative one counts from Cwd and every writable root, "~/" is the home.
	// They name what exists when the sandbox is set up: a file that a command
	// makes later is its own.
	DenyRead []string
	// Network opens the network.
	Network bool
	// Layers is a folder for the private upper layers of /tmp and the caches.
	// It is created when needed and removed by Close. Empty means memory.
	Layers string
	// Environ is the environment of the run, which tells where the caches are.
	Environ []string
	// Helper is the program that becomes the helper; empty is this program.
	Helper string

	// Early is a helper that waits already; nil starts one.
	Early *Early

	faults faults
}

// faults are what tests take away from the kernel.
type faults int64

const (
	noUserNamespaces faults = 1 << iota
	noLandlock
	noOverlay
	noSetattr
	noBubblewrap
)

// Rights are what some commands may do beyond the Options of the run. Their
// sandbox has private layers of its own, because two sandboxes cannot share
// one: what a command has left in /tmp is not seen by one with other rights.
type Rights struct {
	// Off leaves the sandbox.
	Off bool
	// Network opens the network.
	Network bool
	// Read and Write are absolute files or folders.
	Read, Write []string
}

// Info is what a sandbox enforces, for run.started and doctor.
type Info struct {
	Mode    Mode
	Level   Level
	Network bool
	// Warnings are sentences about what is not enforced.
	Warnings []string
}

// Refusal is something that the sandbox seems to have refused inside a command.
// It is an inference from what the command printed.
type Refusal struct {
	// What is read, write or connect; empty if unknown.
	What string
	// Target is the path or the host, empty if unknown.
	Target string
	// Reason is one clause: why it is refused and what would allow it.
	Reason string
}

// Ended is how a command ended, as far as Refusals needs it.
type Ended struct {
	ExitCode int
	Signal   string
	// Output is what it printed, cut to its ends.
	Output string
	// Dir is the folder it ran in.
	Dir string
}

// Sandbox starts commands. It is safe for concurrent use.
type Sandbox struct {
	options Options
	rights  Rights
	box     *box
	// first is the sandbox that Open returned, which owns all others.
	first *Sandbox

	mu      sync.Mutex
	derived map[string]*derived
	closed  bool
	// removal is over when the layers are gone. It is begun with closed.
	removal  sync.WaitGroup
	watched  []string
	reported map[string]bool
}

// box is a sandbox of one set of rights, as the system provides it.
type box struct {
	info     Info
	environ  []string
	launcher proc.Launcher
	// bounds is what Refusals goes by.
	bounds bounds
	close  func(grace time.Duration) int
	// remove, if set, removes its layers once it is closed.
	remove func()
}

type derived struct {
	once    sync.Once
	sandbox *Sandbox
	err     error
}

// Open sets a sandbox up. With Off it only starts commands below a helper that
// sees to it that nothing of them is left. The error is a *fault.Error of
// class fault.Environment if the mode cannot be enforced.
func Open(ctx context.Context, o Options) (*Sandbox, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Sandbox{options: o, derived: map[string]*derived{}, reported: map[string]bool{}}
	s.first = s
	b, err := openBox(ctx, o, Rights{})
	if err != nil {
		return nil, err
	}
	s.box = b
	if b.info.Level != LevelNone {
		for _, path := range o.Protected {
			if !exists(path) {
				s.watched = append(s.watched, path)
			}
		}
	}
	return s, nil
}

func (o *Options) check() error {
	switch o.Mode {
	case ReadOnly, WorkspaceWrite, Off:
	default:
		return fmt.Errorf("open sandbox: no mode %q", o.Mode)
	}
	if o.Mode == ReadOnly {
		o.Writable = nil
	}
	for _, list := range [][]string{{o.Cwd}, o.Writable, o.Protected} {
		for _, path := range list {
			if path != "" && !filepath.IsAbs(path) {
				return fmt.Errorf("open sandbox: the path %q is not absolute", path)
			}
		}
	}
	return nil
}

// Info returns what is enforced.
func (s *Sandbox) Info() Info {
	info := s.box.info
	info.Warnings = slices.Clone(info.Warnings)
	return info
}

// Environ returns the variables that commands need inside, NAME=value, such as
// TMPDIR where /tmp is not writable.
func (s *Sandbox) Environ() []string { return slices.Clone(s.box.environ) }

// With returns a sandbox with more rights, set up once for each set of them.
// Close of the first one ends all.
func (s *Sandbox) With(r Rights) (*Sandbox, error) {
	r = s.rights.and(r)
	first := s.first
	key := r.key()
	if key == (Rights{}).key() {
		return first, nil
	}
	first.mu.Lock()
	d := first.derived[key]
	if d == nil && !first.closed {
		d = &derived{}
		first.derived[key] = d
	}
	first.mu.Unlock()
	if d == nil {
		return nil, lost("the sandbox is closed")
	}
	d.once.Do(func() {
		b, err := openBox(context.Background(), first.options, r)
		d.sandbox, d.err = &Sandbox{options: first.options, rights: r, box: b, first: first}, err
	})
	if d.err != nil {
		return nil, d.err
	}
	return d.sandbox, nil
}

// and adds rights. Outside of the sandbox nothing else matters.
func (r Rights) and(more Rights) Rights {
	if r.Off || more.Off {
		return Rights{Off: true}
	}
	return Rights{
		Network: r.Network || more.Network,
		Read:    union(r.Read, more.Read), Write: union(r.Write, more.Write),
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func (r Rights) key() string {
	return fmt.Sprintf("%t %t %q %q", r.Off, r.Network, r.Read, r.Write)
}

// Launcher returns what starts commands in the sandbox, or nil if they are
// started directly.
func (s *Sandbox) Launcher() proc.Launcher { return s.box.launcher }

// Refusals infers from how a command ended and what it printed whether the
// sandbox stood in its way.
func (s *Sandbox) Refusals(e Ended) []Refusal { return s.box.bounds.refusals(e) }

// Appeared returns protected folders that did not exist when the sandbox was
// set up and that a command has created since the last call.
func (s *Sandbox) Appeared() []string {
	first := s.first
	first.mu.Lock()
	defer first.mu.Unlock()
	var out []string
	for _, path := range first.watched {
		if !first.reported[path] && exists(path) {
			first.reported[path] = true
			out = append(out, path)
		}
	}
	return out
}

// Close ends everything that still runs inside, TERM, grace, KILL, removes the
// layers, and returns how many processes were ended. It does nothing for a
// sandbox that With returned.
func (s *Sandbox) Close(grace time.Duration) int {
	ended := s.End(grace)
	s.removal.Wait()
	return ended
}

// End is the first part of Close: nothing runs any more when it returns. The
// layers, in which commands may have left any number of files, are being removed
// meanwhile, and Close waits for that.
func (s *Sandbox) End(grace time.Duration) int {
	if s.first != s {
		return 0
	}
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	if !closed {
		s.removal.Add(1)
	}
	all := []*box{s.box}
	for _, d := range s.derived {
		// Waits for one that is being set up, and keeps one from being.
		d.once.Do(func() { d.err = lost("the sandbox is closed") })
		if d.err == nil {
			all = append(all, d.sandbox.box)
		}
	}
	s.mu.Unlock()
	if closed {
		return 0
	}
	ended := make([]int, len(all))
	var wait sync.WaitGroup
	for i, b := range all {
		wait.Go(func() { ended[i] = b.close(grace) })
	}
	wait.Wait()
	go s.removeAll(all) // Close waits for it
	total := 0
	for _, n := range ended {
		total += n
	}
	return total
}

func (s *Sandbox) removeAll(boxes []*box) {
	defer s.removal.Done()
	for _, b := range boxes {
		if b.remove != nil {
			b.remove()
		}
	}
	removeLayers(s.options.Layers)
}

// removeLayers removes a folder whatever the modes of those in it: overlays
// leave some without any.
func removeLayers(folder string) {
	if folder == "" || os.RemoveAll(folder) == nil {
		return
	}
	_ = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // of the user's own, or nothing helps
		}
		return nil
	})
	_ = os.RemoveAll(folder) // what is left is in drover's own folder
}

// lost says that commands can no longer be started.
func lost(why string) error {
	return &fault.Error{
		Code: "sandbox_lost", What: "the sandbox cannot start commands any more", Why: why,
		Fix: "start the run again", Exit: fault.Environment, Err: proc.ErrGone,
	}
}

// unavailable says that there is no sandbox to be had.
func unavailable(why string, cause error) error {
	return &fault.Error{
		Code: "sandbox_unavailable", What: "no sandbox for commands", Why: why,
		Fix:  "see what this system lacks with: drover doctor, or run without with: --sandbox off",
		Exit: fault.Environment, Err: cause,
	}
}

// where names the system in errors.
func where() string { return runtime.GOOS + "/" + runtime.GOARCH }
