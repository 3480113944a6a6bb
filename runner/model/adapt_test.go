package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

func TestSchemaIsMadeStrictWithoutChangingItsMeaning(t *testing.T) {
	for _, c := range []struct{ name, own, want string }{
		{"optional property", `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["a"]}`,
			`{"type":"object","properties":{"b":{"type":["string","null"]},"a":{"type":"integer"}},"required":["b","a"],"additionalProperties":false}`},
		{"optional enum", `{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x","y",null]}},"required":["a"],"additionalProperties":false}`},
		{"nested arrays and definitions", `{"type":"object","required":["l"],"properties":{"l":{"type":"array","items":{"type":"array","items":{"$ref":"#/$defs/p"}}}},"$defs":{"p":{"type":"object","properties":{"x":{"type":"number","minimum":0}}}}}`,
			`{"type":"object","properties":{"l":{"type":"array","items":{"type":"array","items":{"$ref":"#/$defs/p"}}}},"$defs":{"p":{"type":"object","properties":{"x":{"type":["number","null"],"description":"(minimum: 0)"}},"required":["x"],"additionalProperties":false}},"required":["l"],"additionalProperties":false}`},
		{"optional reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/s"},{"type":"null"}]}},"$defs":{"s":{"type":"string"}},"required":["a"],"additionalProperties":false}`},
		{"root array", `{"type":"array","items":{"type":"string"}}`,
			`{"type":"object","properties":{"answer":{"type":"array","items":{"type":"string"}}},"required":["answer"],"additionalProperties":false}`},
		{"oneOf", `{"type":"object","required":["a"],"properties":{"a":{"oneOf":[{"type":"string"},{"type":"number"}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]}},"required":["a"],"additionalProperties":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Adapt(json.RawMessage(c.own))
			if !got.Strict || got.Problem != "" {
				t.Fatalf("not adapted: %s", got.Problem)
			}
			if d := cmp.Diff(plainJSON(t, c.want), plainJSON(t, string(got.Schema))); d != "" {
				t.Errorf("schema (-want +got):\n%s", d)
			}
			var s jsonschema.Schema
			if err := json.Unmarshal(got.Schema, &s); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Resolve(nil); err != nil {
				t.Errorf("the adapted schema is broken: %v", err)
			}
		})
	}
}

func TestOrderOfPropertiesIsKept(t *testing.T) {
	got := Adapt(json.RawMessage(`{"type":"object","properties":{"why":{"type":"string"},"label":{"type":"string"},"also":{"type":"string"}},"required":["label","why","also"]}`))
	if why, label := strings.Index(string(got.Schema), `"why"`), strings.Index(string(got.Schema), `"label"`); why < 0 || why > label {
		t.Errorf("got %s", got.Schema)
	}
}

func TestSchemaThatWouldChangeItsMeaningIsSentAsItIs(t *testing.T) {
	for _, own := range []string{
		`{"type":"object"}`, `{"type":"object","properties":{"a":{}}}`, `{"type":"object","additionalProperties":{"type":"string"}}`,
		`{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"^x":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"required":["a"]}]}`,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/s"}}}`,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`,
		`{"type":"array","items":{"$ref":"#"}}`, `true`,
	} {
		if got := Adapt(json.RawMessage(own)); got.Strict || got.Problem == "" || string(got.Schema) != own {
			t.Errorf("%s became %s (%v, %q)", own, got.Schema, got.Strict, got.Problem)
		}
	}
}

func TestAnswerToTheStrictSchemaIsOneToTheUsersOwn(t *testing.T) {
	for _, c := range []struct{ name, own, answer, want string }{
		{"null of an optional property goes", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b"]}`, `{"a":null,"b":1}`, `{"b":1}`},
		{"null that the user allows stays", `{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, `{"a":null}`},
		{"required null stays", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":null}`, `{"a":null}`},
		{"wrapped array", `{"type":"array","items":{"type":"string"}}`, `{"answer":["x"]}`, `["x"]`},
		{"bare array", `{"type":"array","items":{"type":"string"}}`, `["x"]`, `["x"]`},
		{"inside items and references", `{"type":"object","required":["l"],"properties":{"l":{"type":"array","items":{"$ref":"#/$defs/p"}}},"$defs":{"p":{"type":"object","properties":{"x":{"type":"number"}}}}}`,
			`{"l":[{"x":null},{"x":1.50}]}`, `{"l":[{},{"x":1.50}]}`},
		{"bytes are kept where nothing changes", `{"type":"object","properties":{"a":{"type":"number"}}}`, `{ "a" : 1e400 }`, `{ "a" : 1e400 }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Adapt(json.RawMessage(c.own))
			if !a.Strict {
				t.Fatal(a.Problem)
			}
			if got := string(a.Restore(json.RawMessage(c.own), json.RawMessage(c.answer))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func FuzzAdapt(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":null}`)
	f.Add(`{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"answer":[{}]}`)
	f.Fuzz(func(t *testing.T, own, answer string) {
		a := Adapt(json.RawMessage(own))
		if a.Strict && !json.Valid(a.Schema) {
			t.Fatalf("%s became %s", own, a.Schema)
		}
		if json.Valid([]byte(answer)) {
			if got := a.Restore(json.RawMessage(own), json.RawMessage(answer)); !json.Valid(got) {
				t.Fatalf("%s became %s", answer, got)
			}
		}
	})
}

func plainJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
