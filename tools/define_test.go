package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"drover/output/event"
)

type echoInput struct {
	Word  string   `json:"word" jsonschema:"What to say."`
	Times uint     `json:"times,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

func echoTool(strict bool) Tool {
	return New(Def[echoInput]{
		Name: "echo", Doc: "Says a word.", Strict: strict,
		Enums:   map[string][]any{"word": {"a", "b"}},
		Display: func(in echoInput, _ Env) string { return "say: " + in.Word },
		Run: func(_ context.Context, in echoInput, _ Env) (Result, error) {
			return Result{Text: strings.Repeat(in.Word, int(in.Times))}, nil
		},
	})
}

func TestArgumentsAreDecodedStrictly(t *testing.T) {
	for _, c := range []struct {
		name, args, err string
		broken, strict  bool
	}{
		{name: "good", args: `{"word":"a","times":2}`},
		{name: "unknown key is ignored", args: `{"word":"a","x":1}`},
		{name: "unknown key when strict", args: `{"word":"a","x":1}`, strict: true, err: `unknown field "x"`},
		{name: "empty string with required field", args: ``, err: "missing field `word`"},
		{name: "null with required field", args: `null`, err: "missing field `word`"},
		{name: "null field", args: `{"word":null}`, err: "missing field `word`"},
		{name: "negative", args: `{"word":"a","times":-1}`, err: "field `times`"},
		{name: "fraction", args: `{"word":"a","times":1.0}`, err: "field `times`"},
		{name: "half an object", args: `{"word":"rm x`, err: "at byte", broken: true},
		{name: "no quotes", args: `{word: a}`, err: "at byte 2", broken: true},
		{name: "trailing text", args: `{"word":"a"} then`, err: "at byte", broken: true},
		{name: "two objects", args: `{"word":"a"}{"word":"b"}`, err: "at byte 12", broken: true},
		{name: "bare string", args: `"a"`, err: "expected a JSON object", broken: true},
		{name: "array", args: `[1]`, err: "expected a JSON object", broken: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := echoTool(c.strict).Prepare(Env{}, Input{Text: c.args})
			if (err == nil) != (c.err == "") {
				t.Fatalf("err = %v, want %q", err, c.err)
			}
			if err == nil {
				return
			}
			if !strings.HasPrefix(err.Error(), "failed to parse function arguments: ") || !strings.Contains(err.Error(), c.err) {
				t.Errorf("err = %q, want it to hold %q", err, c.err)
			}
			if errors.Is(err, ErrArguments) != c.broken {
				t.Errorf("broken = %v, want %v", !c.broken, c.broken)
			}
		})
	}
}

func TestSchemaHasNoNullUnions(t *testing.T) {
	var s struct {
		Required             []string
		AdditionalProperties any
		Properties           map[string]struct {
			Type        string
			Enum        []string
			Description string
		}
	}
	if err := json.Unmarshal(echoTool(false).Spec().Schema, &s); err != nil {
		t.Fatal(err)
	}
	if s.Properties["tags"].Type != "array" || s.Properties["times"].Type != "integer" {
		t.Errorf("types: %+v", s.Properties)
	}
	if w := s.Properties["word"]; len(w.Enum) != 2 || w.Description != "What to say." {
		t.Errorf("word: %+v", w)
	}
	if len(s.Required) != 1 || s.Required[0] != "word" {
		t.Errorf("required: %v", s.Required)
	}
}

func TestFreeformToolTakesTextAndWrappedText(t *testing.T) {
	tool := New(Def[echoInput]{
		Name: "say", Grammar: "start: /.+/",
		Decode: func(text string) (echoInput, error) { return echoInput{Word: text, Times: 1}, nil },
		Run: func(_ context.Context, in echoInput, _ Env) (Result, error) {
			return Result{Text: in.Word}, nil
		},
	})
	for _, in := range []Input{{Text: "hi", Freeform: true}, {Text: `{"input":"hi"}`}} {
		call, err := tool.Prepare(Env{}, in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := call.Run(t.Context(), Env{Emit: func(event.Body) {}})
		if err != nil || got.Text != "hi" || string(call.Args) != `{"input":"hi"}` {
			t.Errorf("%+v: got %q, args %s, err %v", in, got.Text, call.Args, err)
		}
	}
	if _, err := echoTool(false).Prepare(Env{}, Input{Text: "x", Freeform: true}); err == nil ||
		err.Error() != "tool echo invoked with incompatible payload" {
		t.Errorf("freeform call of a function: %v", err)
	}
}

func TestDisplayIsOneShortLine(t *testing.T) {
	got := display("run: a\n\tb " + strings.Repeat("ü", 300))
	if len(got) > 200 || strings.ContainsAny(got, "\n\t") || !strings.HasSuffix(got, "…") {
		t.Errorf("display %q has %d bytes", got, len(got))
	}
}
