package tools

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"drover/tools/internal/proc"
)

// shellKinds are the shells whose scripts the policy can read.
var shellKinds = []string{"bash", "zsh", "sh"}

// shellFolders are where a shell named by its path may lie, besides PATH. One
// from elsewhere may be a program that the agent wrote itself.
var shellFolders = []string{"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}

// shellArgv is the argument vector that runs a script. named is the shell that
// the model asked for; empty is the session's shell.
func (c Commands) shellArgv(named, script string, login bool) []string {
	flag := "-c"
	if login {
		flag = "-lc"
	}
	shell := c.sessionShell()
	if named != "" {
		shell = c.shellNamed(named)
	}
	return []string{shell, flag, script}
}

// shellNamed is the path of the shell that a model names. Any answer is a
// shell: an unknown name is not an error, it means /bin/sh.
func (c Commands) shellNamed(named string) string {
	kind := shellKind(named)
	if kind == "" {
		return "/bin/sh"
	}
	if filepath.IsAbs(named) && slices.Contains(shellFolders, filepath.Dir(named)) && isExecutable(named) {
		return named
	}
	if own := c.sessionShell(); shellKind(own) == kind {
		return own
	}
	return c.find(kind, "/bin/sh")
}

// sessionShell is the shell of commands that name none: the configured one,
// that of the user database, that of SHELL, bash, sh; the first that is a known
// shell and there.
func (c Commands) sessionShell() string {
	for _, path := range []string{c.Shell, loginShell(), c.variable("SHELL")} {
		if shellKind(path) == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = c.find(path, "")
		}
		if path != "" && isExecutable(path) {
			return path
		}
	}
	return c.find("bash", "/bin/sh")
}

// find looks a shell up in the user's PATH.
func (c Commands) find(name, fallback string) string {
	path, err := proc.LookPath(name, "/", c.Environ)
	if err != nil || !filepath.IsAbs(path) {
		return fallback
	}
	return path
}

func (c Commands) variable(name string) string {
	for _, kv := range slices.Backward(c.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// shellKind is the kind of a shell by its file name, or empty.
func shellKind(path string) string {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".exe")
	if slices.Contains(shellKinds, name) {
		return name
	}
	return ""
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// loginShell is the shell that the user database names for the user, or empty.
// It is read once: it cannot change for a running process.
var loginShell = sync.OnceValue(func() string {
	file, err := os.Open("/etc/passwd")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // only read from
	uid := strconv.Itoa(os.Getuid())
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if f := strings.Split(lines.Text(), ":"); len(f) == 7 && f[2] == uid {
			return f[6]
		}
	}
	return ""
})
