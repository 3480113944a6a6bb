package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// Restore turns an answer to the adapted schema into one to the user's own: out
// of the object around it, and without the keys that are null only because a
// strict mode wants every key. An answer that needs neither is returned byte for
// byte.
func (a Adapted) Restore(own, answer json.RawMessage) json.RawMessage {
	if !a.Strict {
		return answer
	}
	if a.Wrapped {
		answer = Unwrap(answer)
	}
	schema, err := decodeOrdered(own)
	if err != nil {
		return answer
	}
	root, ok := schema.(*ordered)
	if !ok {
		return answer
	}
	value, err := decodeOrdered(answer)
	if err != nil {
		return answer
	}
	r := restorer{root: root}
	if r.prune(root, value, 0); r.changed {
		return encodeOrdered(value)
	}
	return answer
}

type restorer struct {
	root    *ordered
	changed bool
}

// maxDepth ends the walk through schemas that refer to each other.
const maxDepth = 100

// prune takes the nulls that the schema does not allow out of a value.
func (r *restorer) prune(s *ordered, value any, depth int) {
	if s = r.deref(s); s == nil || depth > maxDepth {
		return
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		for _, one := range listOf(s.values[key]) {
			r.prune(one, value, depth+1)
		}
	}
	switch v := value.(type) {
	case []any:
		if items, ok := s.values["items"].(*ordered); ok {
			for _, one := range v {
				r.prune(items, one, depth+1)
			}
		}
	case *ordered:
		properties, ok := s.values["properties"].(*ordered)
		if !ok {
			return
		}
		required, _ := s.values["required"].([]any)
		for _, name := range slices.Clone(v.keys) {
			sub, ok := properties.values[name].(*ordered)
			if !ok {
				continue
			}
			if v.values[name] == nil && !slices.Contains(required, any(name)) && !r.nullable(sub, 0) {
				v.keys = slices.DeleteFunc(v.keys, func(k string) bool { return k == name })
				delete(v.values, name)
				r.changed = true
				continue
			}
			r.prune(sub, v.values[name], depth+1)
		}
	}
}

// nullable tells whether a schema allows null by itself.
func (r *restorer) nullable(s *ordered, depth int) bool {
	if s = r.deref(s); s == nil || depth > maxDepth {
		return true
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list := listOf(s.values[key]); len(list) > 0 {
			return slices.ContainsFunc(list, func(one *ordered) bool { return r.nullable(one, depth+1) })
		}
	}
	if list, ok := s.values["enum"].([]any); ok && !slices.Contains(list, any(nil)) {
		return false
	}
	switch t := s.values["type"].(type) {
	case string:
		return t == "null"
	case []any:
		return slices.Contains(t, any("null"))
	}
	return s.values["const"] == nil && s.values["properties"] == nil
}

// deref follows a reference within the document; nil is one that leads nowhere.
func (r *restorer) deref(s *ordered) *ordered {
	for range maxDepth {
		ref, ok := s.values["$ref"].(string)
		if !ok {
			return s
		}
		at, ok := any(r.root), true
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#"), "/") {
			if part == "" {
				continue
			}
			o, isObject := at.(*ordered)
			if !isObject {
				return nil
			}
			at = o.values[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		if s, ok = at.(*ordered); !ok {
			return nil
		}
	}
	return nil
}

func listOf(value any) []*ordered {
	list, _ := value.([]any)
	var out []*ordered
	for _, one := range list {
		if s, ok := one.(*ordered); ok {
			out = append(out, s)
		}
	}
	return out
}
