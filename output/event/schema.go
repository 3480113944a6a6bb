package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON Schema (draft 2020-12) of one line. The producer's
// view names every type and admits nothing else. The consumer's view also
// admits what a later minor version may add: types, keys and enumeration
// values.
func Schema(consumer bool) ([]byte, error) {
	doc, err := buildSchema(consumer)
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, out, "", "  "); err != nil {
		return nil, fmt.Errorf("indent schema: %w", err)
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// Validate checks one line against the producer's schema. Types named x.* are
// experimental: of them only the envelope is checked.
func Validate(line []byte) error {
	var instance map[string]any
	if err := json.Unmarshal(line, &instance); err != nil {
		return fmt.Errorf("read line: %w", err)
	}
	name, _ := instance["type"].(string)
	resolved, err := resolvedFor(name)
	if err != nil {
		return err
	}
	// The validator refuses unknown keys too, but does not say which it was.
	if known := resolved.Schema().Defs["t."+name]; known != nil {
		for key := range instance {
			if known.Properties[key] == nil && !slices.Contains(envelopeKeys, key) {
				return fmt.Errorf("the key %q is not in the schema of %s", key, name)
			}
		}
	}
	if err := resolved.Validate(instance); err != nil {
		return fmt.Errorf("the line does not match the schema: %w", err)
	}
	return nil
}

// resolved caches the compiled schema of each type: a line is checked against
// its own, which is faster than trying all and says what is wrong.
var resolved sync.Map

func resolvedFor(name string) (*jsonschema.Resolved, error) {
	if r, ok := resolved.Load(name); ok {
		return r.(*jsonschema.Resolved), nil
	}
	doc, err := producerSchema()
	if err != nil {
		return nil, err
	}
	def := "t." + name
	if len(name) > 2 && name[:2] == "x." {
		def = "t.x"
	}
	if doc.Defs[def] == nil {
		return nil, fmt.Errorf("the type %q is not in the schema", name)
	}
	one := jsonschema.Schema{Ref: "#/$defs/" + def, Defs: map[string]*jsonschema.Schema{}}
	addDefs(one.Defs, doc, &one)
	r, err := one.CloneSchemas().Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("compile schema of %s: %w", name, err)
	}
	if def != "t.x" { // names of experimental types are without end
		resolved.Store(name, r)
	}
	return r, nil
}

// addDefs collects the definitions that s refers to, so that the schema of one
// type does not hold those of all.
func addDefs(defs map[string]*jsonschema.Schema, doc, s *jsonschema.Schema) {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok && defs[name] == nil {
		defs[name] = doc.Defs[name]
		addDefs(defs, doc, doc.Defs[name])
	}
	for _, p := range s.Properties {
		addDefs(defs, doc, p)
	}
	for _, p := range append(s.AllOf[:len(s.AllOf):len(s.AllOf)], s.Items, s.AdditionalProperties) {
		if p != nil {
			addDefs(defs, doc, p)
		}
	}
}

var producerSchema = sync.OnceValues(func() (*jsonschema.Schema, error) { return buildSchema(false) })

// valuesOf lists the values of every named string type.
func valuesOf() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[RunStatus]():        {"success", "failed", "blocked", "needs_input", "limit", "timeout", "invalid_output", "incomplete", "partial", "cancelled", "internal_error"},
		reflect.TypeFor[SessionStatus]():    {"completed", "failed", "interrupted", "closed"},
		reflect.TypeFor[TurnInput]():        {"prompt", "steer", "tool_results", "agent_message", "check", "retry", "resume"},
		reflect.TypeFor[TurnStatus]():       {"completed", "failed", "interrupted"},
		reflect.TypeFor[Role]():             {"user", "assistant", "system"},
		reflect.TypeFor[Phase]():            {"commentary", "final"},
		reflect.TypeFor[ToolStatus]():       {string(StatusPending), string(StatusAwaiting), string(StatusRunning), string(StatusDone), string(StatusError), string(StatusDenied), string(StatusIncomplete)},
		reflect.TypeFor[IncompleteReason](): {"turn_ended", "cancelled", "timeout", "limit", "provider_error", "crash"},
		reflect.TypeFor[DecisionEffect]():   {"allow", "deny", "would_allow", "would_deny"},
		reflect.TypeFor[Decider]():          {"policy", "default", "grant", "hook", "approver", "tty", "timeout", "sandbox", "dry_run", "yolo"},
		reflect.TypeFor[InputKind]():        {"question", "elicitation", "permission"},
		reflect.TypeFor[CompactTrigger]():   {"auto", "manual"},
		reflect.TypeFor[Layer]():            {"managed", "flag", "user", "project", "builtin"},
		reflect.TypeFor[Scope]():            {"once", "session", "always"},
		reflect.TypeFor[HookOutcome]():      {"ok", "blocked", "error", "timeout"},
		reflect.TypeFor[HookDecision]():     {"allow", "deny", "ask", "defer", "none"},
		reflect.TypeFor[Stream]():           {"stdout", "stderr", "tty"},
		reflect.TypeFor[Encoding]():         {"utf-8", "base64"},
		reflect.TypeFor[FileKind]():         {"add", "modify", "delete", "rename"},
		reflect.TypeFor[CostBasis]():        {"reported", "estimated", "unknown"},
		reflect.TypeFor[PromptSource]():     {"arg", "file", "stdin", "recipe", "job", "resume"},
		reflect.TypeFor[LimitScope]():       {"run", "session", "item", "tool"},
		reflect.TypeFor[NoticeLevel]():      {"info", "warning"},
		reflect.TypeFor[WaitingOn]():        {"provider", "tool", "approval", "input", "lock", "rate_limit", "none"},
		reflect.TypeFor[JobItemStatus]():    {"completed", "failed", "blocked", "timeout", "invalid_output", "limit", "cancelled", "skipped"},
		reflect.TypeFor[JobStatus]():        {"completed", "partial", "failed", "cancelled", "limit"},
		reflect.TypeFor[PlanStatus]():       {"pending", "in_progress", "completed", "cancelled"},
	}
}

// sharedObjects are the objects that several types hold, by their name in the
// schema.
func sharedObjects() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[Usage]():          "usage_totals",
		reflect.TypeFor[Limits]():         "limits",
		reflect.TypeFor[Artifact]():       "artifact",
		reflect.TypeFor[FileRef]():        "file_ref",
		reflect.TypeFor[PolicyRef]():      "policy_ref",
		reflect.TypeFor[Sandbox]():        "sandbox",
		reflect.TypeFor[Grant]():          "grant",
		reflect.TypeFor[SandboxRefusal](): "sandbox_refusal",
		reflect.TypeFor[Denial]():         "denial",
		reflect.TypeFor[DecisionPart]():   "decision_part",
		reflect.TypeFor[Err]():            "err",
		reflect.TypeFor[PlanItem]():       "plan_item",
		reflect.TypeFor[ChangedFile]():    "changed_file",
		reflect.TypeFor[CheckResult]():    "check_result",
	}
}

// runLevel are the types that do not need to belong to a session.
var runLevel = []string{
	"run.started", "run.finished", "usage", "provider.retry", "limit.warning", "limit.reached",
	"hook.finished", "notice", "error", "heartbeat",
	"job.started", "job.item.started", "job.item.finished", "job.progress", "job.finished",
}

// itemLevel are the types that are about a row of a job.
var itemLevel = []string{"job.item.started", "job.item.finished"}

func buildSchema(consumer bool) (*jsonschema.Schema, error) {
	known := map[reflect.Type]*jsonschema.Schema{rawType: {}}
	for t, values := range valuesOf() {
		s := &jsonschema.Schema{Type: "string"}
		if !consumer {
			for _, v := range values {
				s.Enum = append(s.Enum, v)
			}
		}
		known[t] = s
	}
	shared := sharedObjects()
	for t, name := range shared {
		known[t] = &jsonschema.Schema{Ref: "#/$defs/" + name}
	}
	defs := map[string]*jsonschema.Schema{"envelope": envelopeSchema()}
	for t, name := range shared {
		inner := withoutKey(known, t)
		s, err := objectSchema(t, inner, consumer)
		if err != nil {
			return nil, err
		}
		defs[name] = s
	}
	if !consumer {
		refinePolicy(defs["policy_ref"])
	}
	doc := &jsonschema.Schema{
		ID: SchemaID, Schema: "https://json-schema.org/draft/2020-12/schema",
		Title: "drover event, one line (producer view)", Type: "object", Defs: defs,
	}
	if consumer {
		doc.ID, doc.Title = SchemaID+":consumer", "drover event, one line (consumer view)"
		doc.AllOf = append(doc.AllOf, &jsonschema.Schema{Ref: "#/$defs/envelope"})
	}
	for _, name := range typeNames() {
		s, err := typeSchema(name, known, consumer)
		if err != nil {
			return nil, err
		}
		defs["t."+name] = s
		ref := &jsonschema.Schema{Ref: "#/$defs/t." + name}
		if consumer {
			is := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"type": constant(name)}, Required: []string{"type"}}
			doc.AllOf = append(doc.AllOf, &jsonschema.Schema{If: is, Then: ref})
			continue
		}
		doc.OneOf = append(doc.OneOf, ref)
	}
	if !consumer {
		defs["t.x"] = &jsonschema.Schema{
			AllOf:      []*jsonschema.Schema{{Ref: "#/$defs/envelope"}},
			Properties: map[string]*jsonschema.Schema{"type": {Pattern: `^x\.`}},
		}
		doc.OneOf = append(doc.OneOf, &jsonschema.Schema{Ref: "#/$defs/t.x"})
	}
	return doc, nil
}

func withoutKey(m map[reflect.Type]*jsonschema.Schema, drop reflect.Type) map[reflect.Type]*jsonschema.Schema {
	out := make(map[reflect.Type]*jsonschema.Schema, len(m))
	for t, s := range m {
		if t != drop {
			out[t] = s
		}
	}
	return out
}

func constant(v any) *jsonschema.Schema { return &jsonschema.Schema{Const: &v} }

func envelopeSchema() *jsonschema.Schema {
	text := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }
	one, zero := 1.0, 0.0
	return &jsonschema.Schema{
		Type: "object", Required: []string{"v", "seq", "ts", "type", "run_id"},
		Properties: map[string]*jsonschema.Schema{
			"v": constant(Version), "seq": {Type: "integer", Minimum: &one},
			"ts":   {Type: "string", Format: "date-time", Pattern: `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$`},
			"type": text(), "run_id": text(), "session_id": text(), "parent_session_id": text(), "agent": text(),
			"turn": {Type: "integer", Minimum: &zero}, "item_id": text(), "replayed": {Type: "boolean"}, "ext": {Type: "object"},
		},
		PropertyOrder: envelopeKeys,
	}
}

// typeSchema describes one type of event with its envelope.
func typeSchema(name string, known map[reflect.Type]*jsonschema.Schema, consumer bool) (*jsonschema.Schema, error) {
	s, err := objectSchema(reflect.TypeOf(kinds[name].zero), known, true)
	if err != nil {
		return nil, err
	}
	s.AllOf = []*jsonschema.Schema{{Ref: "#/$defs/envelope"}}
	s.Properties["type"] = constant(name)
	s.PropertyOrder = append([]string{"type"}, s.PropertyOrder...)
	if !slices.Contains(runLevel, name) {
		s.Required = append([]string{"session_id"}, s.Required...)
	}
	if slices.Contains(itemLevel, name) {
		s.Required = append([]string{"item_id"}, s.Required...)
	}
	if !consumer {
		s.UnevaluatedProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	return s, nil
}

func objectSchema(t reflect.Type, known map[reflect.Type]*jsonschema.Schema, open bool) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", t.Name(), err)
	}
	if open {
		s.AdditionalProperties = nil
	}
	neverNull(s)
	return s, nil
}

// neverNull takes back that pointers and slices may be null: the encoder
// leaves the absent ones out and writes the required ones as empty.
func neverNull(s *jsonschema.Schema) {
	for _, p := range s.Properties {
		neverNull(p)
	}
	for _, p := range []*jsonschema.Schema{s.Items, s.AdditionalProperties} {
		if p != nil {
			neverNull(p)
		}
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	// A reference with null beside it is how an optional object comes out.
	if s.Ref != "" {
		s.Types = nil
	}
}

// refinePolicy names the values of the policy's plain strings.
func refinePolicy(s *jsonschema.Schema) {
	s.Properties["default"].Enum = []any{"allow", "ask", "deny"}
	s.Properties["on_ask"].Enum = []any{"deny", "fail", "defer", "approver"}
	s.Properties["on_deny"].Enum = []any{"continue", "report", "fail"}
}
