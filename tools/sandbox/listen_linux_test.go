package sandbox

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBoundSocketsAreReadWithBlanks(t *testing.T) {
	text := "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 14921 /srv/a socket\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 14922 @/abstract\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 14923\n" +
		"0000000000000000: 00000002 00000000 00000000 0002 01     5 /dev/log\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 14924 relative\n"
	if diff := cmp.Diff([]string{"/srv/a socket", "/dev/log"}, boundSockets(text)); diff != "" {
		t.Errorf("sockets (-want +got):\n%s", diff)
	}
}

func FuzzBoundSockets(f *testing.F) {
	f.Add("Num RefCount\n")
	f.Add("0: 2 0 00010000 0001 01 1 /a\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, path := range boundSockets(text) {
			if !filepath.IsAbs(path) {
				t.Errorf("got %q", path)
			}
		}
	})
}
