package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Adapted is a JSON Schema in the form that the strict modes of the APIs take.
type Adapted struct {
	// Schema is what is sent: the adapted schema, or the user's own if it cannot
	// be adapted.
	Schema json.RawMessage
	// Strict says that it was adapted. Problem says why not, "" if it was.
	Strict  bool
	Problem string
	// Wrapped says that the answer is the value of the key answer of an object:
	// the APIs want an object where the user wants something else.
	Wrapped bool
}

// answerKey is where a wrapped answer lies.
const answerKey = "answer"

// Adapt makes a schema strict: every object is closed, and every property is
// required, where an optional one may be null instead. What the strict modes do
// not know is left out and told in the description; the answer is checked
// against the user's own schema anyway. A schema whose meaning would change is
// returned as it is: maps with free keys, conditions, and the like.
func Adapt(schema json.RawMessage) Adapted {
	root, err := decodeOrdered(schema)
	if err != nil {
		return Adapted{Schema: schema, Problem: err.Error()}
	}
	object, ok := root.(*ordered)
	if !ok {
		return Adapted{Schema: schema, Problem: "it is no object"}
	}
	a := &adapter{}
	out := a.schema(object, "#")
	wrapped := out.values["type"] != "object"
	if wrapped && a.problem == "" {
		out = a.wrap(out)
	}
	if a.problem != "" {
		return Adapted{Schema: schema, Problem: a.problem}
	}
	return Adapted{Schema: out.encode(), Strict: true, Wrapped: wrapped}
}

// Unwrap takes an answer out of the object that the API wanted around it. What is
// not wrapped is returned as it is.
func Unwrap(answer json.RawMessage) json.RawMessage {
	var keys map[string]json.RawMessage
	if json.Unmarshal(answer, &keys) == nil && len(keys) == 1 && keys[answerKey] != nil {
		return keys[answerKey]
	}
	return answer
}

type adapter struct{ problem string }

func (a *adapter) fail(at, why string) {
	if a.problem == "" {
		a.problem = at + ": " + why
	}
}

// impossible are keywords that the strict modes do not have and without which a
// schema means something else.
var impossible = []string{"patternProperties", "propertyNames", "dependentSchemas", "dependentRequired", "dependencies", "not", "if", "then", "else",
	"allOf", "prefixItems", "additionalItems", "contains", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"}

// bounds are keywords that only narrow: they go into the description.
var bounds = []string{"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "minContains", "maxContains", "default", "examples"}

// kept are keywords that stay as they are.
var kept = []string{"type", "enum", "const", "description", "title", "$ref"}

// schema adapts one schema.
func (a *adapter) schema(s *ordered, at string) *ordered {
	out := newOrdered()
	var told []string
	for _, key := range s.keys {
		value := s.values[key]
		switch {
		case slices.Contains(kept, key):
			out.set(key, value)
		case slices.Contains(impossible, key):
			a.fail(at, "the strict modes of the providers have no "+key)
		case slices.Contains(bounds, key):
			told = append(told, key+": "+string(encodeOrdered(value)))
		case key == "properties" || key == "required" || key == "additionalProperties":
			// below
		case key == "items":
			out.set(key, a.sub(value, at+"/items"))
		case key == "anyOf" || key == "oneOf":
			out.set("anyOf", a.list(value, at+"/"+key))
		case key == "$defs" || key == "definitions":
			out.set(key, a.named(value, at+"/"+key))
		}
	}
	if ref, ok := s.values["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
		a.fail(at, "it refers to another document")
	}
	if s.values["type"] == "object" || s.values["properties"] != nil {
		a.object(s, out, at)
	} else if types, ok := s.values["type"].([]any); ok && slices.Contains(types, any("object")) {
		a.object(s, out, at)
	}
	if len(told) > 0 {
		text, _ := out.values["description"].(string)
		out.set("description", strings.TrimSpace(text+" ("+strings.Join(told, ", ")+")"))
	}
	return out
}

// object closes an object and makes every property required.
func (a *adapter) object(s, out *ordered, at string) {
	properties, ok := s.values["properties"].(*ordered)
	if !ok || len(properties.keys) == 0 {
		a.fail(at, "its keys are free")
		return
	}
	if more, ok := s.values["additionalProperties"]; ok && more != false {
		a.fail(at, "it has free keys beside its properties")
		return
	}
	if s.values["type"] == nil {
		out.set("type", "object")
	}
	required, _ := s.values["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok && properties.values[name] == nil {
			a.fail(at, fmt.Sprintf("%q is required and no property", name))
		}
	}
	adapted, names := newOrdered(), []any{}
	for _, name := range properties.keys {
		sub := a.sub(properties.values[name], at+"/properties/"+name)
		if !slices.Contains(required, any(name)) {
			sub = orNull(sub)
		}
		adapted.set(name, sub)
		names = append(names, name)
	}
	out.set("properties", adapted)
	out.set("required", names)
	out.set("additionalProperties", false)
}

// orNull lets a value be null, too.
func orNull(sub any) any {
	s, ok := sub.(*ordered)
	if !ok {
		return sub
	}
	switch t := s.values["type"].(type) {
	case string:
		if t == "null" {
			return s
		}
		if s.values["const"] != nil {
			break
		}
		s.set("type", []any{t, "null"})
		if list, ok := s.values["enum"].([]any); ok && !slices.Contains(list, any(nil)) {
			s.set("enum", append(slices.Clone(list), nil))
		}
		return s
	case []any:
		if !slices.Contains(t, any("null")) {
			s.set("type", append(slices.Clone(t), "null"))
		}
		if list, ok := s.values["enum"].([]any); ok && !slices.Contains(list, any(nil)) {
			s.set("enum", append(slices.Clone(list), nil))
		}
		return s
	}
	null := newOrdered()
	null.set("type", "null")
	either := newOrdered()
	either.set("anyOf", []any{s, null})
	return either
}

func (a *adapter) sub(value any, at string) any {
	s, ok := value.(*ordered)
	if !ok {
		a.fail(at, "it is no schema that can be adapted")
		return value
	}
	if len(s.keys) == 0 {
		a.fail(at, "it allows anything")
	}
	return a.schema(s, at)
}

func (a *adapter) list(value any, at string) any {
	list, ok := value.([]any)
	if !ok {
		a.fail(at, "it is no list")
		return value
	}
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = a.sub(one, fmt.Sprintf("%s/%d", at, i))
	}
	return out
}

func (a *adapter) named(value any, at string) any {
	list, ok := value.(*ordered)
	if !ok {
		a.fail(at, "it is no object")
		return value
	}
	out := newOrdered()
	for _, name := range list.keys {
		out.set(name, a.sub(list.values[name], at+"/"+name))
	}
	return out
}

// wrap puts an object around a schema whose answer is none. Definitions stay at
// the root, where references look for them.
func (a *adapter) wrap(s *ordered) *ordered {
	if bytes.Contains(s.encode(), []byte(`"$ref":"#"`)) {
		a.fail("#", "it refers to itself and is no object")
	}
	out, inner, properties := newOrdered(), newOrdered(), newOrdered()
	out.set("type", "object")
	for _, key := range s.keys {
		if key == "$defs" || key == "definitions" {
			out.set(key, s.values[key])
		} else {
			inner.set(key, s.values[key])
		}
	}
	properties.set(answerKey, inner)
	out.set("properties", properties)
	out.set("required", []any{answerKey})
	out.set("additionalProperties", false)
	return out
}

// ordered is a JSON object that keeps the order of its keys: models write the
// properties in the order in which they read them.
type ordered struct {
	keys   []string
	values map[string]any
}

func newOrdered() *ordered { return &ordered{values: map[string]any{}} }

func (o *ordered) set(key string, value any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

func (o *ordered) encode() json.RawMessage { return encodeOrdered(o) }

func encodeOrdered(value any) json.RawMessage {
	var b bytes.Buffer
	writeOrdered(&b, value)
	return b.Bytes()
}

func writeOrdered(b *bytes.Buffer, value any) {
	switch v := value.(type) {
	case *ordered:
		b.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quoteJSON(key))
			b.WriteByte(':')
			writeOrdered(b, v.values[key])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, one := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeOrdered(b, one)
		}
		b.WriteByte(']')
	case string:
		b.WriteString(quoteJSON(v))
	default:
		raw, _ := json.Marshal(v) // numbers, booleans and null always encode
		b.Write(raw)
	}
}

// decodeOrdered decodes one JSON value with its keys in their order and its
// numbers as they are written.
func decodeOrdered(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := nextOrdered(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

func nextOrdered(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		o := newOrdered()
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := nextOrdered(dec)
			if err != nil {
				return nil, err
			}
			o.set(key.(string), v) // the decoder allows nothing else
		}
		_, err := dec.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := nextOrdered(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return tok, nil
}
