//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Folders may have the characters of globs in their names.
func TestDenyGlobsBelowFoldersWithOddNames(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain", "[a]", "{a,b}", "a*b", "a?b", `a\b`, `a\[b`, "a b"} {
		root := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Join(root, "sec", "deep"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"key", "sec/x.pem", "sec/deep/y.pem"} {
			if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			glob string
			want []string
		}{
			{"key", []string{"key"}}, {"sec/x.pem", []string{"sec/x.pem"}}, {"sec/", []string{"sec"}}, {"sec/**", []string{"sec"}},
			{"sec/*.pem", []string{"sec/x.pem"}}, {"**/y.pem", []string{"sec/deep/y.pem"}}, {"~/key", []string{"key"}}, {"~/sec/*.pem", []string{"sec/x.pem"}},
		} {
			got, cut := denied([]string{c.glob}, []string{root}, root)
			for i := range c.want {
				c.want[i] = filepath.Join(root, c.want[i])
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(cut) > 0 {
				t.Errorf("%q in %q (-want +got):\n%s", c.glob, name, diff)
			}
		}
	}
}
