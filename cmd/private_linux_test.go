package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover/output/event"
)

// TestCommandsCannotReadDroversEnvironment runs drover without the rights of
// root, which reads everything.
func TestCommandsCannotReadDroversEnvironment(t *testing.T) {
	t.Parallel()
	const look = `cat /proc/$PPID/comm; cat /proc/$PPID/environ > /dev/null && echo readable; cat /proc/$$/environ > /dev/null && echo own; (sleep 300 &) ; exit 0`
	p := run(t, script(t, calls(execCall(look)), says("Done.")), "--check", "! cat /proc/$PPID/environ", "go")
	if os.Getuid() == 0 {
		becomeNobody(t, p)
	}
	stream := p.mustEnd(0)
	got := bodies[event.ToolResultEvent](t, stream)[0].Content
	if strings.Contains(got, "readable") || !strings.Contains(got, "own") || !strings.Contains(got, "ermission denied") {
		t.Errorf("the command saw: %s", got)
	}
}

// becomeNobody makes the process one of a user without rights.
func becomeNobody(t *testing.T, p *process) {
	t.Helper()
	const nobody = 65534
	program, err := os.ReadFile(p.cmd.Path)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Path = filepath.Join(p.dir, "drover")
	if err := os.WriteFile(p.cmd.Path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(p.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, nobody, nobody)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(p.dir), 0o711); err != nil {
		t.Fatal(err)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
