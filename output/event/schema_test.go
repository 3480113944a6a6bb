package event

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// validText makes strings that the schema admits: for fields of a named type
// the first of its values.
func validFilled(t testing.TB) []Body {
	t.Helper()
	var out []Body
	for _, b := range filled(plainText) {
		v := reflect.New(reflect.TypeOf(b)).Elem()
		v.Set(reflect.ValueOf(b))
		setValues(v, valuesOf())
		switch b := v.Interface().(type) {
		case RunStartedEvent:
			b.Policy.Default, b.Policy.OnAsk, b.Policy.OnDeny = "deny", "deny", "report"
			out = append(out, b)
		default:
			out = append(out, v.Interface().(Body))
		}
	}
	return out
}

func setValues(v reflect.Value, values map[reflect.Type][]string) {
	if known, ok := values[v.Type()]; ok {
		v.SetString(known[0])
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			setValues(v.Field(i), values)
		}
	case reflect.Pointer:
		setValues(v.Elem(), values)
	case reflect.Slice:
		if v.Type() != rawType {
			for i := range v.Len() {
				setValues(v.Index(i), values)
			}
		}
	}
}

func TestEveryTypeMatchesItsSchema(t *testing.T) {
	for _, b := range validFilled(t) {
		e := testEvent(b)
		if err := Validate(mustEncode(t, e)); err != nil {
			t.Errorf("%s: %v", b.Type(), err)
		}
		e.ParentSessionID, e.Agent, e.ItemID, e.Replayed, e.Ext = "p", "/root/x", "i", true, json.RawMessage(`{}`)
		if err := Validate(mustEncode(t, e)); err != nil {
			t.Errorf("%s with a full envelope: %v", b.Type(), err)
		}
	}
}

func TestValidateRefusesWhatTheSchemaDoesNotAllow(t *testing.T) {
	good := string(mustEncode(t, testEvent(NoticeEvent{Level: "info", Code: "c", Message: "m"})))
	if err := Validate([]byte(good)); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, old, new, want string }{
		{"an unknown key", `"code"`, `"novel":1,"code"`, "novel"},
		{"an unknown value", `"info"`, `"severe"`, "severe"},
		{"a missing key", `"code":"c",`, ``, "code"},
		{"another type of value", `"code":"c"`, `"code":5`, "code"},
		{"an unknown type", `"notice"`, `"remark"`, `"remark" is not in the schema`},
		{"another version", `"v":1`, `"v":2`, "v"},
		{"a sequence from 0", `"seq":7`, `"seq":0`, "seq"},
		{"a time without milliseconds", `.007Z`, `Z`, "ts"},
		{"no JSON", `{`, `[`, "read line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line := strings.Replace(good, tt.old, tt.new, 1)
			if line == good {
				t.Fatal("nothing was changed")
			}
			if err := Validate([]byte(line)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	noSession := testEvent(TurnStartedEvent{Input: "prompt"})
	noSession.SessionID = ""
	if err := Validate(mustEncode(t, noSession)); err == nil || !strings.Contains(err.Error(), "session_id") {
		t.Errorf("a turn without a session: %v", err)
	}
	experimental := testEvent(Unknown{Name: "x.trial", Raw: json.RawMessage(`{"a":1}`)})
	if err := Validate(mustEncode(t, experimental)); err != nil {
		t.Errorf("an experimental type: %v", err)
	}
}

// resolveDocument compiles what Schema prints, as a user's validator would.
func resolveDocument(t *testing.T, consumer bool) *jsonschema.Resolved {
	t.Helper()
	doc, err := Schema(consumer)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkStrict(doc); err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(doc, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestThePrintedSchemasSayTheSame(t *testing.T) {
	producer, consumer := resolveDocument(t, false), resolveDocument(t, true)
	check := func(r *jsonschema.Resolved, line []byte) error {
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		return r.Validate(v)
	}
	for _, b := range validFilled(t) {
		line := mustEncode(t, testEvent(b))
		if err := check(producer, line); err != nil {
			t.Errorf("producer, %s: %v", b.Type(), err)
		}
		if err := check(consumer, line); err != nil {
			t.Errorf("consumer, %s: %v", b.Type(), err)
		}
		newer := strings.Replace(string(line), `"run_id"`, `"novel":1,"run_id"`, 1)
		if check(producer, []byte(newer)) == nil {
			t.Errorf("producer, %s: a new key is admitted", b.Type())
		}
		if err := check(consumer, []byte(newer)); err != nil {
			t.Errorf("consumer, %s: a new key is refused: %v", b.Type(), err)
		}
	}
	for name, body := range map[string]Body{
		"a new type":  Unknown{Name: "job.paused", Raw: json.RawMessage(`{"why":"x"}`)},
		"a new value": NoticeEvent{Level: "severe", Code: "c", Message: "m"},
	} {
		line := mustEncode(t, testEvent(body))
		if check(producer, line) == nil {
			t.Errorf("producer: %s is admitted", name)
		}
		if err := check(consumer, line); err != nil {
			t.Errorf("consumer: %s is refused: %v", name, err)
		}
	}
	bad := strings.Replace(string(mustEncode(t, testEvent(NoticeEvent{Level: "info"}))), `"code":""`, `"code":1`, 1)
	if check(consumer, []byte(bad)) == nil {
		t.Error("consumer: a key of another kind is admitted")
	}
}

// TestEveryNamedStringHasItsValuesInTheSchema reads the package's source, so
// that a new enumeration cannot be forgotten.
func TestEveryNamedStringHasItsValuesInTheSchema(t *testing.T) {
	known := map[string]bool{"Topic": true}
	for typ, values := range valuesOf() {
		known[typ.Name()] = true
		if !slices.IsSorted(slices.Compact(slices.Clone(values))) && len(values) == 0 {
			t.Errorf("%s has no values", typ.Name())
		}
	}
	shared := map[string]bool{}
	for typ := range sharedObjects() {
		shared[typ.Name()] = true
	}
	var bodies []string
	file := token.NewFileSet()
	for _, name := range []string{"values.go", "types.go", "jobs.go"} {
		tree, err := parser.ParseFile(file, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			switch typ := spec.Type.(type) {
			case *ast.Ident:
				if typ.Name == "string" && !known[spec.Name.Name] {
					t.Errorf("%s has no values in the schema", spec.Name.Name)
				}
			case *ast.StructType:
				if name == "values.go" && !shared[spec.Name.Name] {
					t.Errorf("%s is no shared object of the schema", spec.Name.Name)
				}
				if name != "values.go" {
					bodies = append(bodies, spec.Name.Name)
				}
			}
			return true
		})
	}
	var have []string
	for _, k := range allKinds {
		have = append(have, reflect.TypeOf(k.zero).Name())
	}
	if d := cmp.Diff(bodies, have); d != "" {
		t.Errorf("types.go and allKinds differ: %s", d)
	}
}

// TestTypesDoNotUseTheNamesOfTheEnvelope also finds two fields of one name.
func TestTypesDoNotUseTheNamesOfTheEnvelope(t *testing.T) {
	for _, k := range allKinds {
		typ := reflect.TypeOf(k.zero)
		seen := map[string]bool{}
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "" || seen[name] || slices.Contains(envelopeKeys, name) {
				t.Errorf("%s.%s cannot be named %s", typ.Name(), typ.Field(i).Name, strconv.Quote(name))
			}
			seen[name] = true
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	line := mustEncode(b, testEvent(ToolStatusEvent{ToolCallID: "c1", ToolName: "exec_command", Status: StatusRunning}))
	b.ReportAllocs()
	for b.Loop() {
		if err := Validate(line); err != nil {
			b.Fatal(err)
		}
	}
}
