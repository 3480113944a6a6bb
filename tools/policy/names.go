package policy

import (
	"path"
	"strings"
)

// shells are the programs whose -c takes a script that is looked into.
var shells = set("bash", "sh", "zsh", "dash", "ksh", "ash", "rbash", "mksh", "oksh", "posh", "yash")

// interpreters are the programs that run what stands in their input.
var interpreters = set("python", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "Rscript",
	"julia", "osascript", "pwsh", "powershell", "tclsh", "wish", "expect", "awk", "gawk", "mawk", "fish", "csh", "tcsh",
	"ed", "ex", "vi", "vim", "sqlite3", "psql", "mysql", "gdb", "make", "gmake", "bc", "ghci", "scala", "groovy", "jshell",
	"ssh", "at", "batch", "parallel", "patch", "nc", "telnet", "busybox", "gnuplot", "m4", "dc")

// carriers are programs that can run other programs and are not looked
// through: they match their own name, and deny rules look at what they carry.
var carriers = set("busybox", "toybox", "flock", "watch", "script", "unshare", "nsenter", "chroot", "su", "runuser",
	"strace", "ltrace", "gdb", "taskset", "chrt", "setarch", "linux32", "linux64", "systemd-run", "start-stop-daemon",
	"parallel", "sem", "rush", "entr", "fakeroot", "proot", "firejail", "bwrap", "unbuffer", "rlwrap", "valgrind", "perf",
	"hyperfine", "dbus-run-session", "ssh-agent", "xvfb-run", "cgexec", "numactl", "trickle", "torsocks", "proxychains",
	"proxychains4", "faketime", "expect", "setpriv", "capsh", "prlimit", "choom", "uclampset", "runcon", "sg", "newgrp",
	"pkexec", "gosu", "su-exec", "tini", "dumb-init", "catatonit", "direnv", "mise", "asdf", "nix-shell", "tmux", "screen",
	"dtach", "fish", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh", "powershell", "distrobox", "toolbox", "flatpak-spawn", "ld.so", "ld-linux.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
	"ld-musl-x86_64.so.1", "caffeinate", "arch", "gtimeout", "xterm", "urxvt", "gnome-terminal", "konsole", "alacritty", "kitty", "foot",
	"x-terminal-emulator", "noglob", "nocorrect")

// codeBuiltins are builtins of a shell that take code or change what later
// commands mean.
var codeBuiltins = set("eval", "source", ".", "trap", "alias", "enable", "complete", "bind", "hash", "mapfile",
	"readarray", "set", "shopt", "unalias", "fc", "jobs", "compgen")

// setsVariables are builtins that set the variables they name.
var setsVariables = set("read", "printf", "mapfile", "readarray", "getopts", "unset", "let", "export", "declare",
	"typeset", "local", "readonly")

// evaluatesNames are builtins that evaluate the index of an array in a name
// they are given.
var evaluatesNames = set("read", "printf", "mapfile", "readarray", "getopts", "unset", "let", "export", "declare",
	"typeset", "local", "readonly", "test", "[", "wait")

// builtins are commands of every shell that need not be on PATH.
var builtins = set(".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen",
	"complete", "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false",
	"fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd",
	"printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend",
	"test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait")

// programVariables are variables that choose programs, libraries, options or
// configuration for common tools. They are never neutral.
var programVariables = set("PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "PROMPT_COMMAND", "CDPATH",
	"GLOBIGNORE", "FPATH", "ZDOTDIR", "HOME", "SHELL", "PWD", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "CC",
	"CXX", "CPP", "LD", "AR", "AS", "CLASSPATH", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
	"MAVEN_OPTS", "GRADLE_OPTS", "MAKEFLAGS", "MAKEFILES", "MFLAGS", "MAKE", "LESSOPEN", "LESSCLOSE", "LESS", "RIPGREP_CONFIG_PATH",
	"SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR", "RUSTC", "RUSTC_WRAPPER", "RUSTFLAGS", "RUSTDOC", "CURL_HOME",
	"WGETRC", "OPENSSL_CONF", "KUBECONFIG", "EXECIGNORE", "HISTFILE", "INPUTRC", "TERMINFO", "TERMINFO_DIRS", "LOCPATH",
	"NLSPATH", "GCONV_PATH", "HOSTALIASES", "RES_OPTIONS", "MALLOC_CHECK_", "NULLCMD", "READNULLCMD", "FUNCNEST", "TMPPREFIX",
	"LUA_PATH", "LUA_CPATH", "LUA_INIT", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE", "JULIA_LOAD_PATH", "ERL_FLAGS")

// programPrefixes are beginnings of variables that are never neutral.
var programPrefixes = []string{"LD_", "DYLD_", "GIT_", "BASH_FUNC_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_",
	"GO", "CGO_", "CARGO_", "RUSTUP_", "PIP_", "UV_", "YARN_", "GEM_", "BUNDLE_", "XDG_", "DOCKER_", "DROVER_", "COR_",
	"CORECLR_", "DOTNET_", "ASAN_", "GLIBC_"}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// choosesProgram tells whether a variable is never neutral.
func choosesProgram(name string) bool {
	if programVariables[name] {
		return true
	}
	for _, prefix := range programPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// safeVariable tells whether setting the variable leaves a command what it
// is.
func (p *Policy) safeVariable(name string) bool {
	return anyPattern(p.settings.safeEnv, name)
}

// interprets tells whether a program runs what stands in its input; version
// numbers at the end of the name do not matter.
func interprets(name string) bool {
	return interpreters[name] || shells[name] || interpreters[strings.TrimRight(name, "0123456789.-")]
}

// systemDirs are folders of programs that only the system's owner can write.
var systemDirs = set("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin",
	"/opt/local/bin", "/run/current-system/sw/bin", "/snap/bin")

// trusted tells whether a command word is the program that it is called
// after: found on PATH outside the writable roots, or that file's full name.
func (p *Policy) trusted(text string) bool {
	if !strings.Contains(text, "/") {
		return builtins[text] || p.resolves(text)
	}
	if text[0] != '/' || p.roots.mayChange(clean(text)) {
		return false
	}
	if systemDirs[path.Dir(clean(text))] {
		return true
	}
	if p.env.LookPath == nil {
		return false
	}
	found := p.env.LookPath(path.Base(text))
	if found == "" {
		return false
	}
	return clean(found) == clean(text) || p.env.Real != nil && p.env.Real(found) == p.env.Real(text)
}

// resolves tells whether a bare word is found on PATH outside the places that
// the agent may write to.
func (p *Policy) resolves(name string) bool {
	if p.env.LookPath == nil {
		return true
	}
	file := p.env.LookPath(name)
	return file != "" && !p.roots.mayChange(clean(file))
}

// mayChange tells whether a file lies where the agent may write.
func (s *rootSet) mayChange(name string) bool {
	return belowAny(s.workspace, name) || belowAny(s.writable, name)
}
