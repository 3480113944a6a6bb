package policy

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds how many links RealPath follows, as the kernel does.
const maxLinks = 40

// RealPath returns the name of an absolute path after symbolic links, as
// Env.Real wants it: ".." leaves the folder that a link leads to, and a link
// or a file that does not exist yet is resolved as far as it is there. Too
// many links return the path as written; it cannot be opened either.
func RealPath(name string) string {
	done, todo := string(filepath.Separator), strings.Split(strings.TrimPrefix(name, "/"), "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return name
		}
		if filepath.IsAbs(target) {
			done = string(filepath.Separator)
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return done
}
