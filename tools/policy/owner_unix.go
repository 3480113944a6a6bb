//go:build unix

package policy

import (
	"os"
	"path/filepath"
	"syscall"
)

// unsafeOwner returns why the system's file cannot be trusted, or an empty
// string: whoever can write it or its folder can take away its denials.
func unsafeOwner(name string) string {
	for _, n := range []string{name, filepath.Dir(name)} {
		info, err := os.Stat(n)
		if err != nil {
			return reason(err)
		}
		what := "the file"
		if n != name {
			what = "its folder"
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 {
			return what + " does not belong to root"
		}
		if info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
			return what + " is writable by others"
		}
	}
	return ""
}
