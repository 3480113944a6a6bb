package runner

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"drover/output/fault"
	"drover/runner/strict"
	"drover/runner/textfile"
	"drover/tools"
)

// maxTaskFile bounds a task file and each text file that it names, in bytes.
const maxTaskFile = 16 << 20

// Task is a task file: a run that can be committed, reviewed and repeated. What
// the file leaves out is zero. Paths are absolute.
type Task struct {
	// Path is the file itself.
	Path string
	// Prompt is the text of prompt or prompt_file with its parameters filled
	// in, otherwise byte for byte; of a file a byte-order mark is left out.
	Prompt string
	// Model is the id; the file of a script or replay is absolute.
	Model string
	// Cwd is the folder of the run. It need not exist.
	Cwd string
	// Isolate is none, copy or worktree.
	Isolate string
	// PolicyFile names the policy, or PolicyInline holds it: YAML whose lines
	// and columns are those of the task file.
	PolicyFile   string
	PolicyInline []byte
	// Sandbox is read-only, workspace-write or off.
	Sandbox string
	// Network opens the network for commands. NetworkGiven tells a task that
	// closes it from one that says nothing.
	Network, NetworkGiven bool
	Limits                Limits
	// Checks must succeed after the final answer; CheckRetries is how often a
	// failed one goes back to the agent.
	Checks       []string
	CheckRetries int
	// Mode is default or plan.
	Mode Mode
	// Answers are the answers to questions of the agent, by the question's id.
	Answers map[string]string
	// SchemaFile names the output schema, or SchemaInline holds it.
	SchemaFile   string
	SchemaInline json.RawMessage
	Labels       map[string]string
	AddDirs      []string
	// Tools are the dynamic tools, checked.
	Tools []tools.Dynamic
	// Job makes the task a list job; nil is one run.
	Job *TaskJob

	src    strict.Source
	params map[string]string
}

// LoadTask reads a task file. params are values for its parameters, which must
// be declared there. Errors are faults: of class Usage for such a parameter,
// else of class Config, with the line.
func LoadTask(path string, params map[string]string) (*Task, error) {
	t := &Task{src: strict.Source{Kind: "task file", Name: path, Code: "task_invalid"}}
	data, err := readText(t.src, path)
	if err != nil {
		return nil, err
	}
	if t.Path, err = filepath.Abs(path); err != nil {
		return nil, t.src.Errorf("find its folder: %w", err)
	}
	root, err := strict.Parse(t.src, data)
	if err != nil {
		return nil, err
	}
	if err := t.read(root, data, params); err != nil {
		return nil, err
	}
	return t, nil
}

// readText reads a file of bounded size, which may be a pipe.
func readText(src strict.Source, path string) ([]byte, error) {
	f, err := textfile.Open(path)
	if err != nil {
		return nil, src.Errorf("%w", pathReason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTaskFile+1))
	if err != nil {
		return nil, src.Errorf("%w", pathReason(err))
	}
	if len(data) > maxTaskFile {
		return nil, src.Errorf("it is larger than %d MiB", maxTaskFile>>20)
	}
	return data, nil
}

// pathReason is an error without the path, which the message names already.
func pathReason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// read takes the document apart.
func (t *Task) read(root strict.Value, data []byte, params map[string]string) error {
	version := false
	var prompt, promptFile strict.Value
	declared := strict.Value{}
	keys := strict.Keys{
		"version":     func(v strict.Value) error { version = true; return checkVersion(v) },
		"prompt":      func(v strict.Value) error { prompt = v; return nil },
		"prompt_file": func(v strict.Value) error { promptFile = v; return nil },
		"params":      func(v strict.Value) error { declared = v; return nil },
		"policy":      func(v strict.Value) error { return t.readPolicy(v, data) },
	}
	for _, group := range []strict.Keys{t.runKeys(), t.checkKeys()} {
		for name, read := range group {
			keys[name] = read
		}
	}
	if err := root.Each(keys); err != nil {
		return err
	}
	if !version {
		return t.src.Errorf("it has no version; begin it with the line version: 1")
	}
	if err := t.readParams(declared, params); err != nil {
		return err
	}
	return t.readPrompt(prompt, promptFile)
}

func checkVersion(v strict.Value) error {
	n, err := v.Int(1)
	if err == nil && n != 1 {
		err = v.Errorf("version %d is not known; this drover knows version 1", n)
	}
	return err
}

// runKeys read what bounds the run.
func (t *Task) runKeys() strict.Keys {
	return strict.Keys{
		"model":   t.readModel,
		"cwd":     t.pathInto(&t.Cwd),
		"isolate": choiceInto(&t.Isolate, "none", "copy", "worktree"),
		"sandbox": choiceInto(&t.Sandbox, "read-only", "workspace-write", "off"),
		"network": func(v strict.Value) (err error) {
			t.Network, err = v.Bool()
			t.NetworkGiven = true
			return err
		},
		"limits":   func(v strict.Value) error { return v.Each(t.Limits.keys()) },
		"add_dirs": t.readAddDirs,
		"tools":    t.readTools,
		"job":      t.readJob,
		"mode": func(v strict.Value) error {
			mode, err := v.OneOf(string(ModeDefault), string(ModePlan))
			t.Mode = Mode(mode)
			return err
		},
		"labels": func(v strict.Value) (err error) {
			t.Labels, err = v.TextMap()
			return err
		},
	}
}

// checkKeys read what the result must be like.
func (t *Task) checkKeys() strict.Keys {
	return strict.Keys{
		"checks": func(v strict.Value) (err error) {
			t.Checks, err = v.Texts()
			return err
		},
		"check_retries": func(v strict.Value) error {
			n, err := v.Int(0)
			t.CheckRetries = int(min(n, 1<<20))
			return err
		},
		"output_schema": t.readSchema,
		"answers":       t.readAnswers,
	}
}

// keys read the budgets of a task; each must be above zero.
func (l *Limits) keys() strict.Keys {
	count := func(n *int) func(strict.Value) error {
		return func(v strict.Value) error {
			got, err := v.Int(1)
			*n = int(min(got, 1<<31-1))
			return err
		}
	}
	large := func(n *int64) func(strict.Value) error {
		return func(v strict.Value) (err error) {
			*n, err = v.Int(1)
			return err
		}
	}
	return strict.Keys{
		"turns": count(&l.Turns), "tool_calls": count(&l.ToolCalls), "denials": count(&l.Denials),
		"loop_warn": count(&l.LoopWarn), "loop_stop": count(&l.LoopStop),
		"tokens": large(&l.Tokens), "output_bytes": large(&l.OutputBytes),
		"cost_usd":    func(v strict.Value) (err error) { l.CostUSD, err = v.Positive(); return err },
		"wall":        func(v strict.Value) (err error) { l.Wall, err = v.Duration(); return err },
		"idle":        func(v strict.Value) (err error) { l.Idle, err = v.Duration(); return err },
		"tool":        func(v strict.Value) (err error) { l.Tool, err = v.Duration(); return err },
		"agents":      absent("sub-agents"),
		"agent_depth": absent("sub-agents"),
	}
}

// absent reads a key whose feature this version lacks. A value that asks for
// nothing is fine; everything else must not be passed over in silence.
func absent(feature string) func(strict.Value) error {
	return func(v strict.Value) error {
		if v.IsNull() || (v.IsMap() || v.IsList()) && v.Len() == 0 {
			return nil
		}
		return v.Errorf("this version of drover has no %s; leave the key out", feature)
	}
}

func choiceInto(to *string, known ...string) func(strict.Value) error {
	return func(v strict.Value) (err error) {
		*to, err = v.OneOf(known...)
		return err
	}
}

// pathInto reads a path, relative to the file.
func (t *Task) pathInto(to *string) func(strict.Value) error {
	return func(v strict.Value) error {
		s, err := v.Filled()
		if err != nil {
			return err
		}
		*to = t.abs(s)
		return nil
	}
}

func (t *Task) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(t.Path), path)
}

// readModel makes the path inside script:FILE and replay:DIR absolute.
func (t *Task) readModel(v strict.Value) error {
	id, err := v.Filled()
	if err != nil {
		return err
	}
	for _, prefix := range []string{"script:", "replay:"} {
		if path, ok := strings.CutPrefix(id, prefix); ok && path != "" {
			id = prefix + t.abs(path)
			break
		}
	}
	t.Model = id
	return nil
}

func (t *Task) readAddDirs(v strict.Value) error {
	dirs, err := v.Texts()
	for _, d := range dirs {
		t.AddDirs = append(t.AddDirs, t.abs(d))
	}
	return err
}

func (t *Task) readPolicy(v strict.Value, data []byte) (err error) {
	if !v.IsMap() {
		return t.pathInto(&t.PolicyFile)(v)
	}
	t.PolicyInline, err = v.Source(data)
	return err
}

func (t *Task) readSchema(v strict.Value) (err error) {
	if !v.IsMap() {
		return t.pathInto(&t.SchemaFile)(v)
	}
	t.SchemaInline, err = v.JSON()
	return err
}

// readAnswers reads the answers to questions. An answer without text answers
// nothing.
func (t *Task) readAnswers(v strict.Value) error {
	return v.Entries(func(id string, v strict.Value) error {
		if strings.TrimSpace(id) == "" {
			return v.Errorf("a question has no id")
		}
		label, err := v.Filled()
		if err != nil {
			return err
		}
		if t.Answers == nil {
			t.Answers = map[string]string{}
		}
		t.Answers[id] = label
		return nil
	})
}

// readParams merges the declared parameters with the given ones. A parameter
// without a value must be given one.
func (t *Task) readParams(declared strict.Value, given map[string]string) error {
	t.params = map[string]string{}
	err := declared.Entries(func(name string, v strict.Value) error {
		if !isParam(name) {
			return v.Errorf("a parameter's name consists of letters, digits, _, - and .")
		}
		value, ok := given[name]
		if !ok && v.IsNull() {
			return v.Errorf("the parameter has no value; give it with --param %s=…", name)
		}
		if !ok {
			text, err := v.Text()
			if err != nil {
				return err
			}
			value = text
		}
		t.params[name] = value
		return nil
	})
	if err != nil {
		return err
	}
	for name := range given {
		if _, ok := t.params[name]; !ok {
			return t.undeclared(name)
		}
	}
	return nil
}

func (t *Task) undeclared(name string) error {
	e := &fault.Error{Code: "usage", What: fmt.Sprintf("--param %s cannot be used", strict.Shorten(name)),
		Why: fmt.Sprintf("%q declares no such parameter", t.src.Name), Fix: "declare it under params: in the file", Exit: fault.Usage}
	if known := t.paramNames(); len(known) > 0 {
		e.Fix = "its parameters are: " + strings.Join(known, ", ")
	}
	return e
}

func (t *Task) paramNames() []string {
	var names []string
	for name := range t.params {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (t *Task) readPrompt(prompt, file strict.Value) error {
	switch {
	case !prompt.IsNull() && !file.IsNull():
		return file.Errorf("prompt is given too; leave one of them out")
	case !prompt.IsNull():
		text, err := prompt.Filled()
		if err != nil {
			return err
		}
		t.Prompt, err = t.fill(text)
		if err != nil {
			return prompt.Errorf("%w", err)
		}
	case !file.IsNull():
		return t.readPromptFile(file)
	}
	return nil
}

func (t *Task) readPromptFile(v strict.Value) error {
	name, err := v.Filled()
	if err != nil {
		return err
	}
	src := strict.Source{Kind: "prompt file", Name: name, Code: t.src.Code}
	data, err := readText(src, t.abs(name))
	if err != nil {
		return err
	}
	if data, err = strict.Text(src, data); err != nil {
		return err
	}
	if strings.TrimSpace(string(data)) == "" {
		return src.Errorf("it is empty")
	}
	if t.Prompt, err = t.fill(string(data)); err != nil {
		return src.Errorf("%w", err)
	}
	return nil
}

// fill puts the parameters into a text: ${name} is the value, $${ is a literal
// ${. Values are not looked through again.
func (t *Task) fill(text string) (string, error) {
	var b strings.Builder
	rest := text
	for {
		at := strings.Index(rest, "${")
		if at < 0 {
			b.WriteString(rest)
			return b.String(), nil
		}
		if at > 0 && rest[at-1] == '$' {
			b.WriteString(rest[:at-1])
			b.WriteString("${")
			rest = rest[at+2:]
			continue
		}
		b.WriteString(rest[:at])
		name, after, closed := strings.Cut(rest[at+2:], "}")
		value, ok := t.params[name]
		if !closed || !ok {
			line := 1 + strings.Count(text[:len(text)-len(rest)+at], "\n")
			return "", t.unknownParam(name, line, closed)
		}
		b.WriteString(value)
		rest = after
	}
}

func (t *Task) unknownParam(name string, line int, closed bool) error {
	name, _, _ = strings.Cut(name, "\n")
	name = strict.Shorten(name)
	if closed && isParam(name) {
		why := "params declares no " + name
		if near := fault.Nearest(name, t.paramNames()); near != "" {
			why += ", did you mean " + near + "?"
		}
		return fmt.Errorf("line %d of the prompt: ${%s} is unknown: %s", line, name, why)
	}
	return fmt.Errorf("line %d of the prompt: ${%s is no parameter; write $${ for a literal ${", line, name)
}

func isParam(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '-' && r != '.' && (r < '0' || r > '9')) {
			return false
		}
	}
	return name != ""
}

//go:embed task.schema.json
var taskSchema []byte

// TaskSchema returns the JSON Schema of task files.
func TaskSchema() []byte { return slices.Clone(taskSchema) }
