package sandbox

import (
	"context"
	"io/fs"
	"strings"
	"testing"
)

func TestReportAgreesWithWhatOpens(t *testing.T) {
	w := newWorld(t, nil)
	r := Probe(context.Background())
	if r.Level != w.box.Info().Level || r.OS != "linux" || r.Kernel == "" || !r.Seccomp {
		t.Errorf("got %+v, and the sandbox is %+v", r, w.box.Info())
	}
	if r.UserNamespaces != (r.Level == LevelNamespaces) || r.UserNamespaces == (r.Problem != "") {
		t.Errorf("got %+v", r)
	}
}

func TestHintsNameTheSetting(t *testing.T) {
	for _, c := range []struct {
		name, file, text, says string
		report                 Report
	}{
		{"debian", "/proc/sys/kernel/unprivileged_userns_clone", "0\n", "unprivileged_userns_clone=1", Report{Landlock: 7}},
		{"none allowed", "/proc/sys/user/max_user_namespaces", "0\n", "max_user_namespaces", Report{Landlock: 7}},
		{"ubuntu", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "AppArmor", Report{Landlock: 7}},
		{"docker", "/.dockerenv", "", "seccomp=unconfined", Report{Landlock: 7}},
		{"no overlay", "", "", "overlays", Report{Landlock: 7, UserNamespaces: true}},
		{"no landlock", "", "", "Landlock", Report{UserNamespaces: true, Overlay: true}},
		{"old landlock", "", "", "6.12", Report{UserNamespaces: true, Overlay: true, Landlock: 4}},
		{"nothing to say", "/proc/sys/user/max_user_namespaces", "1000", "", Report{UserNamespaces: true, Overlay: true, Landlock: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := hints(&c.report, func(name string) ([]byte, error) {
				if name == c.file {
					return []byte(c.text), nil
				}
				return nil, fs.ErrNotExist
			})
			if c.says == "" && len(got) > 0 || c.says != "" && (len(got) != 1 || !strings.Contains(got[0], c.says)) {
				t.Errorf("got %q, want %q", got, c.says)
			}
		})
	}
}
