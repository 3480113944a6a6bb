package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"drover/tools/policy"
)

// Def defines a tool with typed arguments.
type Def[In any] struct {
	Name     string
	Doc      string
	Parallel bool
	// Hidden tools are not offered, but answer when called.
	Hidden  bool
	Command bool
	// With names the command tool without which this one is not offered.
	With string
	// Asks marks a tool that needs somebody who answers.
	Asks bool
	// Permits marks a tool that asks for permissions.
	Permits bool
	// Strict refuses keys that In does not have.
	Strict bool
	// Grammar makes the tool freeform; Decode then turns text into In.
	Grammar string
	Decode  func(text string) (In, error)
	// Enums are the allowed values of string fields, by JSON name; a field
	// inside an array of objects is named "field.sub".
	Enums map[string][]any
	// Reads to Approval are as in Spec.
	Reads, Writes, Runs, Connects bool
	Approval                      string
	// Check refuses arguments before the policy is asked; it may be nil.
	Check func(in In, env Env) error
	// Redirect may answer with another call altogether (a patch inside a
	// shell command); nil, nil means that the call is what it seems.
	Redirect func(in In, env Env) (*Call, error)
	Display  func(in In, env Env) string
	// Actions may be nil for a tool without outside effect.
	Actions func(in In, env Env) ([]policy.Action, error)
	Run     func(ctx context.Context, in In, env Env) (Result, error)
}

// New returns the tool that d defines.
func New[In any](d Def[In]) Tool { return &defined[In]{def: d} }

type defined[In any] struct {
	def  Def[In]
	once sync.Once
	spec Spec
	// required are the JSON names of In's fields without omitempty.
	required []string
}

func (t *defined[In]) Spec() Spec {
	t.once.Do(func() {
		d := t.def
		t.spec = Spec{
			Name: d.Name, Doc: strings.TrimSpace(d.Doc), Kind: Function, Parallel: d.Parallel,
			Offered: !d.Hidden, Command: d.Command, With: d.With, Asks: d.Asks, Permits: d.Permits, Grammar: d.Grammar, Approval: d.Approval,
			Reads: d.Reads, Writes: d.Writes, Runs: d.Runs, Connects: d.Connects,
		}
		if d.Grammar != "" {
			t.spec.Kind = Freeform
		}
		t.spec.Schema, t.required = schemaOf[In](d.Enums)
	})
	return t.spec
}

func (t *defined[In]) Prepare(env Env, in Input) (*Call, error) {
	d := t.def
	args, raw, err := t.decode(in)
	if err != nil {
		return nil, err
	}
	if d.Check != nil {
		if err := d.Check(args, env); err != nil {
			return nil, err
		}
	}
	if d.Redirect != nil {
		call, err := d.Redirect(args, env)
		if err != nil || call != nil {
			if call != nil {
				call.Args = raw
			}
			return call, err
		}
	}
	call := &Call{Args: raw, Display: d.Name}
	if d.Display != nil {
		call.Display = display(d.Display(args, env))
	}
	if d.Actions != nil {
		if call.Actions, err = d.Actions(args, env); err != nil {
			return nil, err
		}
	}
	call.Run = func(ctx context.Context, env Env) (Result, error) { return d.Run(ctx, args, env) }
	return call, nil
}

func (t *defined[In]) decode(in Input) (args In, raw json.RawMessage, err error) {
	d := t.def
	switch {
	case in.Freeform && d.Decode == nil:
		return args, nil, fmt.Errorf("tool %s invoked with incompatible payload", d.Name)
	case in.Freeform:
		args, err = d.Decode(in.Text)
		raw, _ = json.Marshal(map[string]string{"input": in.Text}) // a map of strings always encodes
		return args, raw, err
	case d.Decode != nil:
		// A function call with one string input to a freeform tool.
		wrapped, raw, err := decodeArgs[struct {
			Input string `json:"input"`
		}](in.Text, []string{"input"}, true)
		if err != nil {
			return args, nil, err
		}
		args, err = d.Decode(wrapped.Input)
		return args, raw, err
	}
	t.Spec() // computes the required fields
	return decodeArgs[In](in.Text, t.required, d.Strict)
}

// ErrArguments marks arguments that are no JSON object at all, as opposed to
// an object that does not suit the tool.
var ErrArguments = errors.New("arguments are not valid JSON")

// ArgumentError says where arguments could not be parsed.
type ArgumentError struct {
	Message string
	// Broken says that the text is no JSON at all.
	Broken bool
}

// Error returns the text that the model reads.
func (e *ArgumentError) Error() string { return "failed to parse function arguments: " + e.Message }

// Is makes errors.Is(err, ErrArguments) true for broken JSON.
func (e *ArgumentError) Is(target error) bool { return target == ErrArguments && e.Broken }

// decodeArgs decodes a JSON object. Nothing, blanks and null count as {}.
func decodeArgs[In any](text string, required []string, strict bool) (in In, raw json.RawMessage, err error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "null" {
		text = "{}"
	}
	var keys map[string]json.RawMessage
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&keys); err != nil {
		return in, nil, argumentError(text, err)
	}
	end := dec.InputOffset()
	if _, err := dec.Token(); err != io.EOF {
		return in, nil, &ArgumentError{Broken: true, Message: fmt.Sprintf("unexpected text after the JSON object at byte %d", end)}
	}
	for _, name := range required {
		if v, ok := keys[name]; !ok || string(v) == "null" {
			return in, nil, &ArgumentError{Message: "missing field `" + name + "`"}
		}
	}
	dec = json.NewDecoder(strings.NewReader(text))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(&in); err != nil {
		return in, nil, argumentError(text, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return in, nil, argumentError(text, err)
	}
	return in, compact.Bytes(), nil
}

func argumentError(text string, err error) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return &ArgumentError{Broken: true, Message: fmt.Sprintf("%s at byte %d", syntax.Error(), syntax.Offset)}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &ArgumentError{Broken: true, Message: fmt.Sprintf("unexpected end of JSON at byte %d", len(text))}
	case errors.As(err, &wrong) && wrong.Field == "":
		return &ArgumentError{Broken: true, Message: "expected a JSON object, got " + article(wrong.Value)}
	case errors.As(err, &wrong):
		return &ArgumentError{Message: fmt.Sprintf("field `%s`: expected %s, got %s", wrong.Field, wrong.Type, wrong.Value)}
	}
	return &ArgumentError{Message: strings.TrimPrefix(err.Error(), "json: ")}
}

// article puts the article before the name of a JSON type.
func article(name string) string {
	if strings.IndexByte("aeiou", name[0]) >= 0 {
		return "an " + name
	}
	return "a " + name
}

func schemaOf[In any](enums map[string][]any) (schema json.RawMessage, required []string) {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tools: input type %T has no schema: %v", *new(In), err)) // a broken definition, found by every test
	}
	plain(s, enums, "")
	out, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("tools: schema of %T: %v", *new(In), err)) // as above
	}
	return out, s.Required
}

// plain removes the null unions that optional Go types bring, which strict
// providers refuse, and sets the enumerations.
func plain(s *jsonschema.Schema, enums map[string][]any, path string) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	if values, ok := enums[path]; ok {
		s.Enum = values
	}
	for name, sub := range s.Properties {
		at := name
		if path != "" {
			at = path + "." + name
		}
		plain(sub, enums, at)
	}
	if s.Items != nil {
		plain(s.Items, enums, path)
	}
}

// display keeps a Display on one line and below 200 bytes.
func display(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= 200 {
		return s
	}
	cut := 197
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return display(line)
}
