package runner

import (
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"drover/output/event"
	"drover/tools"
	"drover/tools/policy"
)

//go:embed hooks.schema.json
var hookSchema []byte

// HookSchema returns the JSON Schema of what a hook reads ($defs/payload) and
// of what it may print ($defs/answer).
func HookSchema() []byte { return slices.Clone(hookSchema) }

// hookPayload is what a hook reads from its standard input.
type hookPayload struct {
	V             int       `json:"v"`
	SessionID     string    `json:"session_id"`
	RunID         string    `json:"run_id"`
	Agent         string    `json:"agent"`
	CorrelationID string    `json:"correlation_id"`
	Cwd           string    `json:"cwd"`
	Event         HookEvent `json:"hook_event_name"`
	// Source is how the session began.
	Source               string          `json:"source,omitempty"`
	ToolName             string          `json:"tool_name,omitempty"`
	ToolInput            json.RawMessage `json:"tool_input,omitempty"`
	ToolUseID            string          `json:"tool_use_id,omitempty"`
	ToolResponse         *hookResponse   `json:"tool_response,omitempty"`
	StopHookActive       *bool           `json:"stop_hook_active,omitempty"`
	LastAssistantMessage string          `json:"last_assistant_message,omitempty"`
}

// hookResponse is the result of a call. Of a command the output of both streams
// is in stdout, in the order of writing; of a file the rest is set.
type hookResponse struct {
	Content  string  `json:"content"`
	IsError  bool    `json:"is_error"`
	ExitCode *int    `json:"exit_code,omitempty"`
	Stdout   *string `json:"stdout,omitempty"`
	Stderr   *string `json:"stderr,omitempty"`
	FilePath string  `json:"filePath,omitempty"`
	Success  *bool   `json:"success,omitempty"`
}

// hookCall is a call as hooks see it.
type hookCall struct {
	id string
	// names are what a matcher may match; the first is told.
	names []string
	input map[string]any
	// response is set after the call.
	response *hookResponse
}

// The names under which hooks know tools. A patch goes by the names of the
// tools that other products edit with, so that a matcher written for them still
// guards the files.
var (
	commandNames = []string{"Bash", "exec_command", "shell", "shell_command", "local_shell"}
	patchNames   = []string{"apply_patch", "Edit", "MultiEdit", "Write"}
	writeNames   = []string{"Write", "write_file"}
)

// hookCallOf is a call as hooks see it, or nil: only calls that run commands or
// change files have any.
func hookCallOf(c *call) *hookCall {
	h := &hookCall{id: c.id}
	var args map[string]any
	if err := json.Unmarshal(c.prepared.Args, &args); err != nil && !c.input.Freeform {
		return nil // prepared arguments are an object
	}
	switch c.tool.Spec().Name {
	case "exec_command":
		h.names, h.input = commandNames, map[string]any{"command": args["cmd"]}
	case "shell_command":
		h.names, h.input = commandNames, map[string]any{"command": args["command"]}
	case "shell", "local_shell":
		h.names, h.input = commandNames, map[string]any{"command": quoteWords(args["command"])}
	case "apply_patch":
		text, ok := args["input"].(string)
		if !ok {
			text = c.input.Text
		}
		h.names, h.input = patchNames, map[string]any{"command": text}
	case "write_file":
		h.names, h.input = writeNames, map[string]any{"file_path": args["path"], "content": args["content"]}
	default:
		return nil
	}
	if len(h.names) == len(commandNames) && writesFiles(c.prepared) {
		// A command that is a patch in disguise is guarded like one.
		h.names = slices.Concat(commandNames, patchNames)
	}
	return h
}

func writesFiles(p *tools.Call) bool {
	return slices.ContainsFunc(p.Actions, func(a policy.Action) bool {
		return a.Kind == policy.KindWrite || a.Kind == policy.KindDelete
	})
}

// quoteWords writes an argument vector as a shell would read it.
func quoteWords(argv any) string {
	list, _ := argv.([]any) // it was prepared as a list of texts
	words := make([]string, len(list))
	for i, w := range list {
		word, _ := w.(string)
		if word == "" || strings.ContainsFunc(word, needsQuotes) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}

func needsQuotes(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,", r)
}

// hookCallAfter is a finished call as hooks see it, or nil. A command that goes
// on in the background has none until it is over; what tells its end is then the
// call that started it.
func (s *session) hookCallAfter(c *call, res tools.Result) *hookCall {
	h := hookCallOf(c)
	if c.tool.Spec().Name == "write_stdin" {
		h = s.background.take(c, res)
	}
	if h == nil {
		return nil
	}
	text := s.mask(s.Output.Recorded().Cut(res.Text))
	h.response = &hookResponse{Content: text, IsError: res.IsError, ExitCode: res.ExitCode}
	switch {
	case h.names[0] == "Bash" && res.ExitCode == nil && !writesFiles(c.prepared):
		h.response = nil
		s.background.keep(h, res)
		return nil
	case h.names[0] == "Bash":
		none := ""
		h.response.Stdout, h.response.Stderr = &text, &none
	default:
		done := !res.IsError
		h.response.Success = &done
		if path, ok := h.input["file_path"].(string); ok {
			h.response.FilePath = path
		}
	}
	return h
}

// background are the calls whose commands go on, by the id of their session.
type background struct {
	mu    sync.Mutex
	calls map[int]*hookCall
}

// keep remembers a call whose command still runs.
func (b *background) keep(h *hookCall, res tools.Result) {
	var data struct {
		SessionID int `json:"session_id"`
	}
	raw, err := json.Marshal(res.Structured)
	if err != nil || json.Unmarshal(raw, &data) != nil || data.SessionID == 0 {
		return // it is no command that can be asked about later
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls == nil {
		b.calls = map[int]*hookCall{}
	}
	b.calls[data.SessionID] = h
}

// take is the call whose command the result of a write_stdin tells the end of,
// or nil.
func (b *background) take(c *call, res tools.Result) *hookCall {
	var args struct {
		SessionID int `json:"session_id"`
	}
	if res.ExitCode == nil || json.Unmarshal(c.prepared.Args, &args) != nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.calls[args.SessionID]
	delete(b.calls, args.SessionID)
	return h
}

// hookIDs numbers the moments of all runs of the process.
var hookIDs atomic.Int64

// payload is what the hooks of an event are told.
func (s *session) payload(at HookEvent, c *hookCall) hookPayload {
	p := hookPayload{
		V: event.Version, SessionID: s.id, RunID: s.Commands.RunID, Agent: s.agent, Cwd: s.Cwd, Event: at,
		CorrelationID: fmt.Sprintf("hook_%d", hookIDs.Add(1)),
	}
	if at == SessionStart {
		p.Source = "startup"
	}
	if c == nil {
		return p
	}
	p.ToolName, p.ToolUseID, p.ToolResponse = c.names[0], c.id, c.response
	p.ToolInput, _ = json.Marshal(c.input) // texts always encode
	return p
}

// rewriteOf is the one input that hooks want in place of the call's, nil if none
// wants another. Two that want different ones cannot both be right.
func rewriteOf(said []*hookRun, c *hookCall) (map[string]any, *Hook, error) {
	var (
		input map[string]any
		by    *Hook
	)
	for _, d := range said {
		if d.problem != "" || d.answer.input == nil {
			continue
		}
		want := maps.Clone(c.input)
		var given map[string]any
		if err := json.Unmarshal(d.answer.input, &given); err != nil {
			return nil, d.hook, fmt.Errorf("its updatedInput cannot be read: %w", err)
		}
		for name, value := range given {
			old, known := want[name]
			if !known {
				return nil, d.hook, fmt.Errorf("its updatedInput has the key %q, which %s has not", cutTo(name, 60), c.names[0])
			}
			if reflect.TypeOf(value) != reflect.TypeOf(old) {
				return nil, d.hook, fmt.Errorf("its updatedInput has a wrong type for %s", name)
			}
			want[name] = value
		}
		switch {
		case reflect.DeepEqual(want, c.input):
		case input == nil:
			input, by = want, d.hook
		case !reflect.DeepEqual(want, input):
			return nil, d.hook, fmt.Errorf("it and the hook %s want to change the input of the call in different ways", by.Name)
		}
	}
	return input, by, nil
}

// rewrite prepares a call anew with the input that a hook wants.
func (s *session) rewrite(c *call, h *hookCall, input map[string]any, by *Hook) error {
	text, err := rewritten(c, input)
	if err != nil {
		return err
	}
	prepared, err := c.tool.Prepare(s.env(c), tools.Input{Text: text, Freeform: c.input.Freeform})
	if err != nil {
		return fmt.Errorf("the input that it wants cannot be used: %w", err)
	}
	c.prepared, c.input.Text = prepared, text
	h.input = input
	shown, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encode input: %w", err)
	}
	what := "what was run is "
	if s.rehearses(c) {
		what = "what would be run is "
	}
	c.remarks = append(c.remarks, "The hook "+by.Name+" changed the input of this call; "+what+prepared.Display+".")
	s.emit(event.NoticeEvent{Level: "info", Code: "hook_rewrite", Message: "the hook " + by.Name + " changed the input of a call: " + prepared.Display,
		Details: map[string]any{"tool_call_id": c.id, "tool_input": json.RawMessage(shown)}})
	return nil
}

// rewritten is the text of a call with another input.
func rewritten(c *call, input map[string]any) (string, error) {
	name := c.tool.Spec().Name
	command, _ := input["command"].(string)
	if name == "apply_patch" && c.input.Freeform {
		return command, nil
	}
	var args map[string]any
	if err := json.Unmarshal(c.prepared.Args, &args); err != nil {
		return "", errors.New("the arguments of the call are no object")
	}
	switch name {
	case "exec_command":
		args["cmd"] = command
	case "shell_command":
		args["command"] = command
	case "shell", "local_shell":
		args["command"] = []string{"/bin/sh", "-c", command}
	case "apply_patch":
		args["input"] = command
	case "write_file":
		args["path"], args["content"] = input["file_path"], input["content"]
	}
	text, err := json.Marshal(args)
	return string(text), err
}
