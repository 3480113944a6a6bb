package sandbox

import (
	"context"
	"os"
	"testing"
	"time"

	"drover/tools/internal/proc"
)

func benchOptions(b *testing.B) Options {
	base := b.TempDir()
	return Options{
		Mode: WorkspaceWrite, Cwd: base, Writable: []string{base}, Protected: []string{base + "/.git"},
		Layers: base + "/layers", Environ: os.Environ(),
	}
}

// BenchmarkOpen is the set-up and the end of a sandbox.
func BenchmarkOpen(b *testing.B) {
	o := benchOptions(b)
	var open, close time.Duration
	for b.Loop() {
		t0 := time.Now()
		s, err := Open(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		s.Close(time.Second)
		open += t1.Sub(t0)
		close += time.Since(t1)
	}
	b.ReportMetric(float64(open.Microseconds())/float64(b.N), "open-µs")
	b.ReportMetric(float64(close.Microseconds())/float64(b.N), "close-µs")
}

// BenchmarkLaunchTrue is one command, in the sandbox, below a helper that bounds
// nothing, and right below drover.
func BenchmarkLaunchTrue(b *testing.B) {
	for _, mode := range []Mode{WorkspaceWrite, Off} {
		b.Run(string(mode), func(b *testing.B) {
			o := benchOptions(b)
			o.Mode = mode
			s, err := Open(context.Background(), o)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close(time.Second)
			for b.Loop() {
				launchTrue(b, s.Launcher())
			}
		})
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			launchTrue(b, directly{})
		}
	})
}

// directly starts commands as drover does without a Launcher.
type directly struct{}

func (directly) Pid() int { return 0 }

func (directly) Launch(l proc.Launch) (proc.Child, error) {
	path, err := proc.LookPath(l.Argv[0], l.Dir, l.Env)
	if err != nil {
		return nil, err
	}
	p, err := proc.StartHelper(path, l.Argv, &os.ProcAttr{Dir: l.Dir, Env: l.Env, Files: l.Files[:]})
	return directChild{p}, err
}

type directChild struct{ p *os.Process }

func (c directChild) Pid() int { return c.p.Pid }

func (c directChild) Wait() (proc.Status, error) {
	st, err := c.p.Wait()
	return proc.Status{Code: st.ExitCode()}, err
}

func launchTrue(b *testing.B, l proc.Launcher) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	ch, err := l.Launch(proc.Launch{Argv: []string{"true"}, Dir: "/", Env: os.Environ(), Files: [3]*os.File{null, null, null}})
	if err != nil {
		b.Fatal(err)
	}
	if st, err := ch.Wait(); err != nil || st.Code != 0 {
		b.Fatalf("%+v %v", st, err)
	}
}
