package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// This file judges JSON more strictly than encoding/json does: a line of the
// stream must read the same in every parser, so a key may occur once per
// object and every string is whole Unicode.

// maxDepth bounds nesting, so that no input can exhaust the stack.
const maxDepth = 500

// strictRaw returns raw JSON that a strict parser reads without complaint.
// Empty becomes nil. Duplicate keys are reduced to the last one, which is what
// encoding/json would have read; what is no JSON at all becomes a string that
// holds it.
func strictRaw(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if !json.Valid(raw) {
		return appendString(nil, []byte(raw))
	}
	if checkStrict(raw) == nil && !bytes.Contains(raw, []byte("\u2028")) && !bytes.Contains(raw, []byte("\u2029")) {
		return compact(raw)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return appendString(nil, []byte(raw))
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return appendString(nil, []byte(raw))
	}
	return bytes.TrimSpace(out.Bytes())
}

// compact removes insignificant space, line breaks above all.
func compact(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return raw
	}
	return out.Bytes()
}

// checkStrict tells what a strict parser would refuse in one JSON value. data
// may not have anything but space around it.
func checkStrict(data []byte) error {
	if !utf8.Valid(data) {
		return fmt.Errorf("it is not valid UTF-8")
	}
	if !json.Valid(data) {
		return fmt.Errorf("it is not JSON")
	}
	s := scanner{data: data}
	return s.value(0)
}

// eachMember calls fn for every member of a valid JSON object.
func eachMember(object []byte, fn func(key string, value []byte)) error {
	s := scanner{data: object}
	s.space()
	if s.pos >= len(s.data) || s.data[s.pos] != '{' || !json.Valid(object) {
		return fmt.Errorf("it is not an object")
	}
	s.pos++
	for {
		s.space()
		if s.data[s.pos] == '}' {
			return nil
		}
		if s.data[s.pos] == ',' {
			s.pos++
			s.space()
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		s.space()
		s.pos++ // the colon
		s.space()
		from := s.pos
		if err := s.value(1); err != nil {
			return err
		}
		fn(key, s.data[from:s.pos])
	}
}

// scanner walks over JSON that is known to be valid.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	s.space()
	switch s.data[s.pos] {
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case '"':
		_, err := s.text()
		return err
	}
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return nil
		}
		s.pos++
	}
	return nil
}

func (s *scanner) object(depth int) error {
	// Most objects are small: a linear search beats a map.
	var few [16]string
	keys := few[:0]
	var many map[string]bool
	for s.pos++; ; {
		s.space()
		switch s.data[s.pos] {
		case '}':
			s.pos++
			return nil
		case ',':
			s.pos++
			continue
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		if many == nil && len(keys) == cap(few[:]) {
			many = make(map[string]bool, 2*len(keys))
			for _, k := range keys {
				many[k] = true
			}
		}
		double := many[key]
		if many == nil {
			for _, k := range keys {
				double = double || k == key
			}
		}
		if double {
			return fmt.Errorf("the key %q occurs twice", key)
		}
		if many != nil {
			many[key] = true
		} else {
			keys = append(keys, key)
		}
		s.space()
		s.pos++ // the colon
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
}

func (s *scanner) array(depth int) error {
	for s.pos++; ; {
		s.space()
		switch s.data[s.pos] {
		case ']':
			s.pos++
			return nil
		case ',':
			s.pos++
			continue
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
}

// text reads a string and returns what it says. Half of a surrogate pair is an
// error: there is no such character, and parsers differ on it.
func (s *scanner) text() (string, error) {
	from := s.pos
	escaped := false
	for s.pos++; s.data[s.pos] != '"'; s.pos++ {
		if s.data[s.pos] == '\\' {
			escaped = true
			s.pos++
		}
	}
	s.pos++
	quoted := s.data[from:s.pos]
	if !escaped {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	if loneSurrogate(quoted) {
		return "", fmt.Errorf("a string holds half a surrogate pair")
	}
	var out string
	if err := json.Unmarshal(quoted, &out); err != nil {
		return "", fmt.Errorf("read string: %w", err)
	}
	return out, nil
}

func loneSurrogate(quoted []byte) bool {
	for i := 0; i < len(quoted)-1; i++ {
		if quoted[i] != '\\' {
			continue
		}
		i++
		if quoted[i] != 'u' {
			continue
		}
		u := hex4(quoted[i+1:])
		i += 4
		switch {
		case u >= 0xDC00 && u <= 0xDFFF:
			return true
		case u >= 0xD800 && u <= 0xDBFF:
			if i+6 >= len(quoted) || quoted[i+1] != '\\' || quoted[i+2] != 'u' {
				return true
			}
			if low := hex4(quoted[i+3:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 6
		}
	}
	return false
}

// hex4 reads four hexadecimal digits, -1 if they are none.
func hex4[T string | []byte](s T) rune {
	if len(s) < 4 {
		return -1
	}
	var n rune
	for i := range 4 {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | rune(c-'A'+10)
		default:
			return -1
		}
	}
	return n
}
