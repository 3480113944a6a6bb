package policy

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
)

// hostPattern is a name, *.suffix or *, with or without a port.
type hostPattern struct{ name, port string }

func newHostPattern(text string) hostPattern {
	name, port := splitHost(text)
	return hostPattern{name: name, port: port}
}

// splitHost returns the name in lower case without a final dot, and the port,
// if there is one.
func splitHost(text string) (name, port string) {
	name = strings.ToLower(strings.TrimSpace(text))
	if i := strings.LastIndexByte(name, ':'); i >= 0 && (strings.Count(name, ":") == 1 || strings.HasSuffix(name[:i], "]")) {
		name, port = name[:i], name[i+1:]
	}
	name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"), ".")
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.Unmap().String()
	}
	return name, port
}

func matchHost(patterns []hostPattern, host string) bool {
	name, port := splitHost(host)
	for _, p := range patterns {
		if p.port != "" && p.port != "*" && p.port != port {
			continue
		}
		if p.name == "*" || p.name == name {
			return true
		}
		if suffix, ok := strings.CutPrefix(p.name, "*."); ok && strings.HasSuffix(name, "."+suffix) {
			return true
		}
	}
	return false
}

// matches tells whether the argument has a value that one of the globs
// matches. JSON decoders take a key in any case and the last of several, so
// an allow rule wants all candidates to match, a deny rule any.
func (a argument) matches(raw json.RawMessage, suspicious bool) bool {
	values, err := pointed(raw, a.pointer)
	if err != nil || len(values) == 0 {
		return false
	}
	for _, v := range values {
		ok := matchValue(a.globs, v, suspicious)
		if ok == suspicious {
			return ok
		}
	}
	return !suspicious
}

func matchValue(globs []pattern, raw json.RawMessage, suspicious bool) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return false
	}
	switch raw[0] {
	case '"':
		var s string
		return json.Unmarshal(raw, &s) == nil && anyPattern(globs, s)
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return false
		}
		for _, v := range list {
			if ok := matchValue(globs, v, suspicious); ok == suspicious {
				return ok
			}
		}
		return !suspicious
	case '{':
		return suspicious && anyPattern(globs, string(raw))
	}
	return anyPattern(globs, string(raw))
}

// pointed returns all values that a reader could find at the pointer.
func pointed(raw json.RawMessage, pointer []string) ([]json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(pointer) == 0 {
		return []json.RawMessage{raw}, nil
	}
	if len(raw) == 0 {
		return nil, nil
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(pointer[0])
		if err != nil || i < 0 || i >= len(list) {
			return nil, nil
		}
		return pointed(list[i], pointer[1:])
	case '{':
		return pointedMember(raw, pointer)
	}
	return nil, nil
}

func pointedMember(raw json.RawMessage, pointer []string) ([]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var found []json.RawMessage
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if name, _ := key.(string); !strings.EqualFold(name, pointer[0]) {
			continue
		}
		more, err := pointed(value, pointer[1:])
		if err != nil {
			return nil, err
		}
		if more == nil {
			// One candidate leads nowhere: the value may be absent.
			more = []json.RawMessage{json.RawMessage("{}")}
		}
		found = append(found, more...)
	}
	return found, nil
}

// parsePointer splits a JSON pointer; ok is false if it is none.
func parsePointer(text string) (keys []string, ok bool) {
	if !strings.HasPrefix(text, "/") {
		return nil, false
	}
	for key := range strings.SplitSeq(text[1:], "/") {
		keys = append(keys, strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
	}
	return keys, true
}
