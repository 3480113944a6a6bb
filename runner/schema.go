package runner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/model"
)

// maxSchemaTries is how often the final answer may miss its schema.
const maxSchemaTries = 3

// CompileSchema checks a JSON Schema (draft 2020-12 or draft-07) and returns
// it ready for use. Its error is a fault of class Config; name is what the
// user called the schema.
func CompileSchema(name string, raw []byte) (*Schema, error) {
	bad := func(err error) error {
		return &fault.Error{Code: "schema_invalid", What: fmt.Sprintf("output schema %q cannot be used", name),
			Why: err.Error(), Fix: "give a JSON Schema object, such as {\"type\":\"object\"}", Exit: fault.Config, Err: err}
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, bad(err)
	}
	if t := wrongType(&s); t != "" {
		return nil, bad(fmt.Errorf("JSON has no type %q", t))
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, bad(err)
	}
	var compact json.RawMessage
	if compact, err = json.Marshal(json.RawMessage(raw)); err != nil {
		return nil, bad(err)
	}
	return &Schema{Raw: compact, sent: model.Adapt(compact), Validate: func(value json.RawMessage) error {
		var v any
		if err := json.Unmarshal(value, &v); err != nil {
			return err
		}
		return resolved.Validate(v)
	}}, nil
}

// wrongType returns the first type in a schema that no value can have, or "":
// with it every answer would be wrong, and only the paid ones would tell.
func wrongType(s *jsonschema.Schema) string {
	if s == nil {
		return ""
	}
	for _, t := range append([]string{s.Type}, s.Types...) {
		if !slices.Contains([]string{"", "null", "boolean", "object", "array", "number", "string", "integer"}, t) {
			return t
		}
	}
	inner := slices.Concat(s.PrefixItems, s.ItemsArray, s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{
		s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems, s.AdditionalProperties, s.PropertyNames,
		s.UnevaluatedProperties, s.Not, s.If, s.Then, s.Else,
	})
	for _, named := range []map[string]*jsonschema.Schema{s.Defs, s.Definitions, s.Properties, s.PatternProperties, s.DependentSchemas} {
		for _, name := range slices.Sorted(maps.Keys(named)) {
			inner = append(inner, named[name])
		}
	}
	for _, c := range inner {
		if t := wrongType(c); t != "" {
			return t
		}
	}
	return ""
}

// matchSchema checks the final answer against the schema, if there is one. A
// miss asks for the final message again, and for nothing else.
func (s *session) matchSchema(text string) (event.TurnInput, *Stop) {
	if s.Schema == nil {
		return "", nil
	}
	value, err := s.Schema.read(text)
	s.mu.Lock()
	if err == nil {
		s.outcome.StructuredOutput, s.outcome.StructuredError = value, ""
	} else {
		// A failed check may have sent back an answer that matched.
		s.outcome.StructuredOutput, s.outcome.StructuredError = nil, err.Error()
	}
	s.mu.Unlock()
	if err == nil {
		return "", nil
	}
	s.schemaTries++
	if s.schemaTries >= maxSchemaTries {
		return "", &Stop{Exit: fault.InvalidOutput, Reason: "invalid_output", Err: &event.Err{
			Code: "invalid_output", Message: "the final answer does not match the output schema: " + err.Error(),
			Fix: "read message for the raw answer; a simpler schema or a stronger model may help",
		}}
	}
	s.say("user", "Your final answer does not match the JSON Schema: "+err.Error()+
		"\nSend only the corrected JSON value. The work itself need not be repeated.")
	return "retry", nil
}

// Loose is why the schema cannot be handed to providers in their strict form, or
// "". The answer is checked here either way.
func (s *Schema) Loose() string { return s.sent.Problem }

// read takes the value out of the final answer and checks it against the user's
// own schema. A value that matches as it is stays as it is.
func (s *Schema) read(text string) (json.RawMessage, error) {
	value := json.RawMessage(unfence(text))
	err := s.Validate(value)
	if err == nil || !s.sent.Strict || !json.Valid(value) {
		return value, err
	}
	restored := s.sent.Restore(s.Raw, value)
	if again := s.Validate(restored); again == nil {
		return restored, nil
	}
	return value, err
}

// unfence takes a JSON value out of the code fence that models like to put
// around it.
func unfence(text string) string {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	_, rest, ok = strings.Cut(rest, "\n")
	body, found := strings.CutSuffix(strings.TrimSpace(rest), "```")
	if !ok || !found {
		return text
	}
	return strings.TrimSpace(body)
}
