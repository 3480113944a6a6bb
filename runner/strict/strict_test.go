package strict

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/fault"
)

var source = Source{Kind: "test file", Name: "t.yaml", Code: "test_invalid"}

func parse(t *testing.T, text string) Value {
	t.Helper()
	v, err := Parse(source, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestErrorsNameLineKeyAndWhatWasMeant(t *testing.T) {
	read := func(v Value) error {
		return v.Each(Keys{
			"model":   func(v Value) error { _, err := v.Filled(); return err },
			"turns":   func(v Value) error { _, err := v.Int(1); return err },
			"cost":    func(v Value) error { _, err := v.Positive(); return err },
			"wall":    func(v Value) error { _, err := v.Duration(); return err },
			"on":      func(v Value) error { _, err := v.Bool(); return err },
			"mode":    func(v Value) error { _, err := v.OneOf("fast", "slow"); return err },
			"checks":  func(v Value) error { _, err := v.Texts(); return err },
			"labels":  func(v Value) error { _, err := v.TextMap(); return err },
			"limits":  func(v Value) error { return v.Each(Keys{"tool_calls": func(Value) error { return nil }}) },
			"nothing": func(Value) error { return nil },
		})
	}
	for _, c := range []struct{ name, text, want string }{
		{"unknown", "model: x\nmodle: y", `line 2: unknown key "modle", did you mean "model"?`},
		{"swapped", "trurns: 1", `line 1: unknown key "trurns", did you mean "turns"?`},
		{"case", "MODEL: x", `line 1: unknown key "MODEL", did you mean "model"?`},
		{"far off", "colour: x", `line 1: unknown key "colour"`},
		{"nested", "limits:\n  tool-calls: 3", `line 2: limits: unknown key "tool-calls", did you mean "tool_calls"?`},
		{"twice", "model: a\nmodel: b", `line 2: the key "model" is given twice`},
		{"no mapping", "- a", `line 1: it must be a mapping of keys, not a list`},
		{"no number", "turns: ten", `line 1: turns: "ten" is not a whole number`},
		{"fraction", "turns: 1.5", `line 1: turns: "1.5" is not a whole number`},
		{"zero", "turns: 0", `line 1: turns: 0 is too small; it must be at least 1`},
		{"negative cost", "cost: -1", `line 1: cost: -1 is too small; it must not be negative`},
		{"no cost at all", "cost: 0.0", `line 1: cost: 0 is too small; it must be above 0`},
		{"no cost", "cost: .nan", `line 1: cost: ".nan" is not a number`},
		{"no unit", "wall: 10", `line 1: wall: "10" has no unit; write 90s, 10m or 1h30m`},
		{"no duration", "wall: soon", `line 1: wall: "soon" is not a duration; write 90s, 10m or 1h30m`},
		{"negative duration", "wall: -5m", `line 1: wall: -5m is too small; it must be above 0`},
		{"no bool", "on: maybe", `line 1: on: "maybe" is neither true nor false`},
		{"no choice", "mode: fsat", `line 1: mode: "fsat" is not one of fast, slow, did you mean "fast"?`},
		{"empty", "model: ' '", `line 1: model: it is empty`},
		{"no value", "on: true\nmodel:", `line 2: model: it has no value`},
		{"no text", "model: {a: b}", `line 1: model: it must be text, not a mapping`},
		{"no list", "checks: ls", `line 1: checks: it must be a list, not "ls"`},
		{"blank item", "checks:\n- ls\n- ''", `line 3: checks[1]: it is empty`},
		{"list in map", "labels: {a: [b]}", `line 1: labels.a: it must be text, not a list`},
		{"merge", "labels:\n  <<: {a: b}", `line 2: labels: a key must be text`},
		{"list as key", "? [a]\n: b", `line 1: a key must be text`},
		{"anchor", "model: &a x\n", `line 1: anchors, aliases and tags are not supported`},
		{"tag", "model: !!binary eA==\n", `line 1: anchors, aliases and tags are not supported`},
		{"two documents", "model: x\n---\nmodel: y", `line 2: a second document begins`},
		{"syntax", "model: [", `line 1: did not find expected node content`},
		{"utf-16", "\xff\xfem\x00", `it is UTF-16; save it as UTF-8`},
		{"latin-1", "turns: 1\nmodel: \xe4\n", `line 2: it is not UTF-8 text`},
		{"nul", "turns: 1\n\nmodel: \x00\n", `line 3: it holds a NUL byte; save it as UTF-8 text`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := Parse(source, []byte(c.text))
			if err == nil {
				err = read(v)
			}
			var f *fault.Error
			if !errors.As(err, &f) || f.Exit != fault.Config || f.Code != "test_invalid" || f.What != `test file "t.yaml" cannot be used` {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(f.Why, c.want) {
				t.Errorf("got  %s\nwant %s", f.Why, c.want)
			}
		})
	}
}

func TestGoodValuesAreRead(t *testing.T) {
	type values struct {
		Name  string
		N     int64
		Cost  float64
		Wall  time.Duration
		On    bool
		Texts []string
		Map   map[string]string
	}
	var got values
	v := parse(t, "\ufeff# comment\nname: 2026-01-02\nn: 1_000\ncost: .5\nwall: 1h30m\non: true\ntexts: [a, 1]\nmap: {GOFLAGS: '', Mixed: 'Ü'}\n")
	err := v.Each(Keys{
		"name":  func(v Value) (err error) { got.Name, err = v.Text(); return err },
		"n":     func(v Value) (err error) { got.N, err = v.Int(0); return err },
		"cost":  func(v Value) (err error) { got.Cost, err = v.Positive(); return err },
		"wall":  func(v Value) (err error) { got.Wall, err = v.Duration(); return err },
		"on":    func(v Value) (err error) { got.On, err = v.Bool(); return err },
		"texts": func(v Value) (err error) { got.Texts, err = v.Texts(); return err },
		"map":   func(v Value) (err error) { got.Map, err = v.TextMap(); return err },
	})
	want := values{"2026-01-02", 1000, 0.5, 90 * time.Minute, true, []string{"a", "1"}, map[string]string{"GOFLAGS": "", "Mixed": "Ü"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Fatalf("%v (-want +got):\n%s", err, d)
	}
	for _, empty := range []string{"", "# only a comment\n", "~", "---\n"} {
		if v := parse(t, empty); !v.IsNull() || v.Each(nil) != nil {
			t.Errorf("%q is not empty", empty)
		}
	}
}

func TestJSONKeepsTheOrderOfKeys(t *testing.T) {
	v := parse(t, "z: 1\na: [true, null, 0x10, 1.5, .5, 2020-01-01, \"<é>\", '007', 12345678901234567890]\nm: {}\n")
	got, err := v.JSON()
	want := `{"z":1,"a":[true,null,16,1.5,0.5,"2020-01-01","<é>","007",12345678901234567890],"m":{}}`
	if err != nil || string(got) != want {
		t.Fatalf("got  %s, %v\nwant %s", got, err, want)
	}
	if _, err := parse(t, "a: .inf").JSON(); err == nil {
		t.Fatal("infinity became JSON")
	}
}

func TestSourceKeepsLinesAndColumns(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"block", "a: ä\nkey:\n  x: 1\n  # why\n  y: [2]\nz: 3\n", "    \n    \n  x: 1\n  # why\n  y: [2]\n"},
		{"last", "a: 1\nkey:\n  - x\n", "    \n    \n  - x\n"},
		{"flow", "key: {x: '}'} # see }\nz: 1\n", "     {x: '}'} # see }\n"},
		{"flow in flow", "{a: ü, key: {x: [1]}, z: {}}", "            {x: [1]}"},
		{"flow at the end", "{a: 1, key: {x: {}}}\n", "            {x: {}}"},
		{"crlf", "a: 1\r\nkey:\r\n  x: 1\r\n", "    \r\n    \r\n  x: 1\r\n"},
		{"bom", "\ufeffkey: {x: 1}\n", "     {x: 1}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := parse(t, c.text).Entries(func(name string, v Value) error {
				if name != "key" {
					return nil
				}
				got, err := v.Source([]byte(c.text))
				if string(got) != c.want {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// FuzzParse checks that no text crashes the reader, that JSON of it is valid,
// and that the source of a value holds the value.
func FuzzParse(f *testing.F) {
	f.Add("a: 1\nb:\n  c: [x, y]\nd: |\n  text\n")
	f.Add("{a: {b: c}, d: [}]}")
	f.Add("a:\n- b: 'x'\n  c: \"\\u00e4\"\r\nd: ~")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(source, []byte(text))
		if err != nil {
			return
		}
		if data, err := v.JSON(); err == nil && !json.Valid(data) {
			t.Fatalf("%q is no JSON", data)
		}
		if !v.IsMap() {
			return
		}
		_ = v.Entries(func(_ string, value Value) error { // an error is as good as a value here
			if !value.IsMap() && !value.IsList() {
				return nil
			}
			want, err := value.JSON()
			if err != nil {
				return nil
			}
			part, err := value.Source([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(source, part)
			if err != nil {
				t.Fatalf("source %q: %v", part, err)
			}
			if got, err := again.JSON(); err != nil || string(got) != string(want) {
				t.Fatalf("source %q is %s, %v, want %s", part, got, err, want)
			}
			return nil
		})
	})
}
