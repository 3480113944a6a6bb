package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/textfile"
	"drover/tools"
)

// addHooks hands the hooks to the run. A hook
// that must not fail and whose program is missing ends the run here, before the
// first request to the model.
func (a *app) addHooks(p *prepared, in inputs) error {
	hooks := slices.Clone(in.config.Hooks)
	if len(hooks) == 0 {
		return nil
	}
	find := hookFinder{cwd: in.cwd, home: a.getenv("HOME"), look: a.hookPath(in.config.ShellEnvironment)}
	listed := make([]any, 0, len(hooks))
	for i := range hooks {
		h := &hooks[i]
		program, missing := find.program(h.Command)
		entry := map[string]any{"name": h.Name, "event": string(h.Event), "file": h.File, "line": h.Line, "command_sha256": hexSum([]byte(h.Command))}
		switch {
		case missing && h.OnError == runner.HookDeny:
			return hookMissing(h, program)
		case missing:
			p.options.Notices = append(p.options.Notices, event.NoticeEvent{Level: "warning", Code: "hook_missing",
				Message: fmt.Sprintf("the %s hook %s cannot be run: there is no program %q", h.Event, h.Name, program)})
		case program != "":
			sum, err := fileSum(program)
			if err != nil {
				return hookUnreadable(h, program, err)
			}
			entry["program"], entry["program_sha256"] = program, sum
			if a.agentCanWrite(p, in, program) {
				h.Program, h.ProgramSHA256 = program, sum
			}
		}
		listed = append(listed, entry)
	}
	p.options.Hooks = hooks
	p.options.Notices = append(p.options.Notices, event.NoticeEvent{Level: "info", Code: "hooks",
		Message: fmt.Sprintf("hooks watch over this run: %d", len(hooks)), Details: map[string]any{"hooks": listed}})
	return nil
}

func hookMissing(h *runner.Hook, program string) error {
	return &fault.Error{Code: "hook_missing", What: fmt.Sprintf("the %s hook %q cannot be run", h.Event, h.Name),
		Why: fmt.Sprintf("there is no program %q", program), Exit: fault.Environment,
		Fix: fmt.Sprintf("install it, or repair hooks: in %q line %d; with on_error: report the run would go on without it", h.File, h.Line)}
}

func hookUnreadable(h *runner.Hook, program string, err error) error {
	return &fault.Error{Code: "hook_unreadable", What: fmt.Sprintf("the %s hook %q cannot be run", h.Event, h.Name),
		Why: fmt.Sprintf("%q: %s", program, osReason(err)), Exit: fault.Environment, Err: err}
}

// agentCanWrite tells whether the agent could replace a program.
func (a *app) agentCanWrite(p *prepared, in inputs, path string) bool {
	if in.settings.sandbox == "off" {
		return true
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, dir := range append(in.settings.writable(in.cwd), in.policy.AddDirs()...) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

// maxHookProgram is far above any script; larger programs are told by name only.
const maxHookProgram = 16 << 20

// fileSum is the hash of a program, "" for one that is too large to be read each
// time.
func fileSum(path string) (string, error) {
	data, err := textfile.Plain(path, maxHookProgram)
	switch {
	case errors.Is(err, textfile.ErrTooLarge), errors.Is(err, fs.ErrPermission):
		return "", nil // a program may be executable without being readable
	case err != nil:
		return "", err
	}
	return hexSum(data), nil
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// hookPath looks programs up where hooks will, or returns nil if that is not
// known.
func (a *app) hookPath(e tools.ShellEnvironment) func(string) string {
	path := a.getenv("PATH")
	if set, ok := e.Set["PATH"]; ok {
		path = set
	} else if e.Inherit == "none" || len(e.Exclude) > 0 || len(e.IncludeOnly) > 0 {
		return nil
	}
	return lookPath(path)
}

// hookFinder finds the program that a hook will run first.
type hookFinder struct {
	cwd, home string
	look      func(string) string
}

// program returns the program of a script as an absolute path, or the file that
// an interpreter will run; "" if that cannot be known without running it.
// missing says that it is not there, and program is then its name.
func (f hookFinder) program(script string) (program string, missing bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil || len(file.Stmts) == 0 {
		return "", false // the session's shell may read it differently
	}
	call := firstCall(file.Stmts[0])
	if call == nil || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return "", false
	}
	name, ok := f.word(call.Args[0])
	if !ok || name == "" {
		return "", false
	}
	if !strings.Contains(name, "/") {
		if slices.Contains(shellWords, name) || f.look == nil {
			return "", false
		}
		found := f.look(name)
		if found == "" {
			return name, true
		}
		name = found
	} else if name = absFrom(f.cwd, name); !isProgram(name) {
		return name, true
	}
	if len(call.Args) > 1 && slices.Contains(interpreters, filepath.Base(name)) {
		if arg, ok := f.word(call.Args[1]); ok && arg != "" && !strings.HasPrefix(arg, "-") {
			arg = absFrom(f.cwd, arg)
			info, err := os.Stat(arg)
			return arg, err != nil || !info.Mode().IsRegular()
		}
	}
	return name, false
}

// firstCall is the simple command that a statement runs first, or nil.
func firstCall(s *syntax.Stmt) *syntax.CallExpr {
	for s != nil {
		switch c := s.Cmd.(type) {
		case *syntax.CallExpr:
			return c
		case *syntax.BinaryCmd:
			s = c.X
		default:
			return nil
		}
	}
	return nil
}

// word is a word whose value is known.
func (f hookFinder) word(w *syntax.Word) (string, bool) {
	var b strings.Builder
	ok := f.parts(&b, w.Parts, false)
	text := b.String()
	if rest, tilde := strings.CutPrefix(text, "~/"); tilde && f.home != "" && ok {
		text = filepath.Join(f.home, rest)
	}
	return text, ok
}

func (f hookFinder) parts(b *strings.Builder, parts []syntax.WordPart, quoted bool) bool {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, `\`) || !quoted && strings.ContainsAny(p.Value, "*?[{") {
				return false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if !f.parts(b, p.Parts, true) {
				return false
			}
		case *syntax.ParamExp:
			value, known := f.variable(p)
			if !known {
				return false
			}
			b.WriteString(value)
		default:
			return false
		}
	}
	return true
}

func (f hookFinder) variable(p *syntax.ParamExp) (string, bool) {
	if p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Param == nil {
		return "", false
	}
	switch p.Param.Value {
	case "DROVER_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "PWD":
		return f.cwd, true
	case "HOME":
		return f.home, f.home != ""
	}
	return "", false
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// interpreters run the file that is their first argument.
var interpreters = []string{"sh", "bash", "dash", "zsh", "ksh", "python", "python3", "node", "ruby", "perl", "php", "deno", "bun"}

// shellWords are what shells do themselves, and wrappers behind which the
// program stands.
var shellWords = []string{
	".", ":", "[", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare", "disown", "echo", "emulate", "enable",
	"eval", "exec", "exit", "export", "false", "fg", "function", "getopts", "hash", "jobs", "kill", "let", "local", "logout", "mapfile", "noglob",
	"print", "printf", "pwd", "read", "readarray", "readonly", "return", "set", "setopt", "shift", "shopt", "source", "suspend", "test", "time", "times",
	"trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait", "whence",
}
