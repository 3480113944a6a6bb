//go:build unix

package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// placesEnv tells a process of this test to make places until it is killed: it
// holds the mode, then the source and the folder come.
const placesEnv = "RUNNER_TEST_PLACES"

func TestMakePlacesUntilKilled(t *testing.T) {
	mode := os.Getenv(placesEnv)
	if mode == "" {
		t.Skip("this is the process that another test kills")
	}
	m, err := NewIsolator(t.Context(), mode, os.Getenv(placesEnv+"_SOURCE"), os.Getenv(placesEnv+"_DIR"))
	if err != nil {
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for n := 0; ctx.Err() == nil; n++ {
		group.Go(func() error { return editAndRemove(ctx, m, n) })
	}
	t.Fatal(group.Wait())
}

func TestNothingIsLeftOfAProcessThatIsKilledWhileItMakesPlaces(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"copy", "worktree"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			src := repository(t)
			for n := range 40 {
				put(t, filepath.Join(src, "sub", "d", fmt.Sprint(n)), "text\n")
			}
			commitAll(t, src)
			for n := range 4 {
				dir := filepath.Join(t.TempDir(), "places")
				killWhilePlacesAreMade(t, program, mode, src, dir, 3*(n+1))
				if err := CleanIsolated(context.Background(), src, dir); err != nil {
					t.Error(err)
				}
				if d := cmp.Diff([]string(nil), names(t, dir)); d != "" {
					t.Errorf("places (-want +got):\n%s", d)
				}
				if d := cmp.Diff([]string(nil), names(t, filepath.Join(src, ".git", "worktrees"))); d != "" {
					t.Errorf("git's worktrees (-want +got):\n%s", d)
				}
			}
		})
	}
}

// killWhilePlacesAreMade kills the process as soon as the named number of rows
// has begun.
func killWhilePlacesAreMade(t *testing.T, program, mode, src, dir string, after int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run=^TestMakePlacesUntilKilled$")
	cmd.Env = append(os.Environ(), placesEnv+"="+mode, placesEnv+"_SOURCE="+filepath.Join(src, "sub"), placesEnv+"_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with the gits it runs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil {
		if rows, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("row-%d*", after))); len(rows) > 0 { // the pattern is right
			break
		}
		time.Sleep(time.Millisecond) // nothing tells when a folder appears
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	if ctx.Err() != nil {
		t.Fatal("the process has made no places")
	}
}
