package policy

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

func resolved(t *testing.T) (*jsonschema.Schema, *jsonschema.Resolved) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &s, r
}

// keysOf returns the keys that the loader knows at a place, which it tells
// about a key that is like none of them.
func keysOf(t *testing.T, yaml string) []string {
	t.Helper()
	f := loadError(t, Sources{Inline: []byte(strings.Replace(yaml, "KEY", "zzzzzzzzzzzzzzzz: 1", 1))})
	_, list, ok := strings.Cut(f.Fix, " are ")
	if !ok {
		t.Fatalf("%s: got %q", yaml, f.Fix)
	}
	list, _, _ = strings.Cut(list, ". Check")
	keys := strings.Split(list, ", ")
	slices.Sort(keys)
	return keys
}

func TestSchemaKnowsTheKeysOfTheLoader(t *testing.T) {
	s, _ := resolved(t)
	for _, c := range []struct {
		name, yaml string
		in         *jsonschema.Schema
	}{
		{"top", "{KEY}", s},
		{"shell", "shell: {KEY}", s.Properties["shell"]},
		{"approval", "approval: {KEY}", s.Defs["granular"]},
		{"rule", "rules: [{KEY}]", s.Defs["rule"]},
		{"exception", "rules: [{id: a, effect: deny, argv: [x], except: [{KEY}]}]", s.Defs["exception"]},
		{"mcp", "rules: [{id: a, effect: deny, mcp: {KEY}}]", s.Defs["mcp"]},
		{"annotations", "rules: [{id: a, effect: deny, mcp: {server: x, annotations: {KEY}}}]", s.Defs["mcp"].Properties["annotations"]},
		{"test", "tests: [{KEY}]", s.Defs["test"]},
		{"path of a test", "tests: [{path: {KEY}, expect: deny}]", s.Defs["test"].Properties["path"]},
	} {
		var keys []string
		for key := range c.in.Properties {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if diff := cmp.Diff(keysOf(t, c.yaml), keys); diff != "" {
			t.Errorf("%s (-loader +schema):\n%s", c.name, diff)
		}
	}
}

func TestSchemaAcceptsWhatTheLoaderAccepts(t *testing.T) {
	_, r := resolved(t)
	texts := map[string]string{"asking": asking}
	for _, name := range Presets() {
		data, _ := Preset(name)
		texts[name] = string(data)
	}
	example, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	texts["example"] = string(example)
	texts["all keys"] = `
version: 1
approval: {granular: {sandbox_approval: true, rules: false, mcp_elicitations: true}}
locked: true
add_dirs: [/data]
deny_read: "*.key"
shell: {safe_env: []}
rules:
  - {id: a, effect: allow, argv: [npm, [ci, install]], network: true, sandbox: off, timeout: 1m30s, mode: tty}
  - {id: b, effect: ask, mcp: {server: x, annotations: {readOnlyHint: true}}, max_scope: once, on_ask: fail, except: [{agent: /root}]}
tests: [{exec: x, mode: headless, expect: deny}]
`
	for name, text := range texts {
		load(t, text)
		if err := r.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{
		"rules: [{id: a, effect: deny}]", "rules: [{effect: deny, argv: [x]}]", "default: maybe", "rules: [{id: a, effect: allow, argv: [x], sandbox: read-only}]",
		"approval: {rules: true}", "max_denials: 0", "rules: [{id: a, effect: deny, argv: []}]", "tests: [{exec: x}]", "tests: [{exec: x, host: y, expect: deny}]",
		"rules: [{id: a, effect: deny, args: {role: x}}]", "rules: [{id: a, effect: deny, mcp: {annotations: {readOnlyHint: true}}}]",
	} {
		loadError(t, Sources{Inline: []byte(text)})
		if r.Validate(asJSON(t, text)) == nil {
			t.Errorf("the schema accepts %s", text)
		}
	}
}

// asJSON returns a YAML text as a JSON reader sees it.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
