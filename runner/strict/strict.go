// Package strict reads YAML files that people write: task files and configs.
//
// Nothing in such a file is passed over. A key that is not known, given twice
// or of the wrong type is an error that names the line and, for a slip of the
// pen, the key that was meant. Parse gives a Value, which its reader takes apart
// with Each and the methods for scalars; every error is a fault of class
// Config. The package knows no particular file and touches no disk.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"drover/output/fault"
)

// Source says what a text is, for its errors.
type Source struct {
	// Kind is what people call such a file, such as "task file".
	Kind string
	// Name is the file's name as the user knows it.
	Name string
	// Code is the stable code of every error in the file.
	Code string
}

// Errorf makes the error of a file; the message is why it cannot be used.
func (s Source) Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &fault.Error{Code: s.Code, What: fmt.Sprintf("%s %q cannot be used", s.Kind, s.Name), Why: err.Error(), Exit: fault.Config, Err: errors.Unwrap(err)}
}

// Value is a place in a file: its document, or something inside it. The zero
// Value stands for a file without content.
type Value struct {
	src Source
	// key is the name of the value for errors, such as "limits.wall".
	key  string
	node *yaml.Node
	// next is the key that follows the value in its mapping, if there is one.
	next *yaml.Node
}

// Parse reads one YAML document. A UTF-8 byte-order mark is passed over; any
// other encoding, a second document, anchors, aliases and tags are refused. A file
// with comments only gives an empty Value.
func Parse(src Source, data []byte) (Value, error) {
	data, err := Text(src, data)
	if err != nil {
		return Value{}, err
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return Value{src: src}, nil
	} else if err != nil {
		return Value{}, src.Errorf("%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		return Value{}, src.Errorf("line %d: a second document begins", more.Line)
	} else if !errors.Is(err, io.EOF) {
		return Value{}, src.Errorf("%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	v := Value{src: src, node: &doc}
	if doc.Kind == yaml.DocumentNode {
		v.node = doc.Content[0]
	}
	if n := findStrange(v.node); n != nil {
		return Value{}, src.Errorf("line %d: anchors, aliases and tags are not supported", n.Line)
	}
	if v.node.Tag == "!!null" {
		return Value{src: src}, nil
	}
	return v, nil
}

// Text checks that data is UTF-8 text and returns it without its byte-order
// mark.
func Text(src Source, data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, src.Errorf("it is UTF-16; save it as UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return nil, src.Errorf("line %d: it holds a NUL byte; save it as UTF-8 text", 1+bytes.Count(data[:i], []byte{'\n'}))
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return nil, src.Errorf("line %d: it is not UTF-8 text", 1+bytes.Count(data[:i], []byte{'\n'}))
		}
		i += n
	}
	return data, nil
}

// findStrange returns a node with an anchor or an alias, which would let a short
// file stand for a long one, or with a tag, which no value here needs.
func findStrange(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return n
	}
	for _, c := range n.Content {
		if found := findStrange(c); found != nil {
			return found
		}
	}
	return nil
}

// Scalar makes a Value of a text from elsewhere, such as a variable; src names
// the place.
func Scalar(src Source, text string) Value {
	return Value{src: src, node: &yaml.Node{Kind: yaml.ScalarNode, Value: text}}
}

// IsNull tells whether nothing is there: no content, null or ~.
func (v Value) IsNull() bool { return v.node == nil || v.node.Tag == "!!null" }

// IsMap tells whether the value is a mapping.
func (v Value) IsMap() bool { return v.node != nil && v.node.Kind == yaml.MappingNode }

// IsList tells whether the value is a list.
func (v Value) IsList() bool { return v.node != nil && v.node.Kind == yaml.SequenceNode }

// Len is the number of entries of a mapping or list.
func (v Value) Len() int {
	switch {
	case v.IsMap():
		return len(v.node.Content) / 2
	case v.IsList():
		return len(v.node.Content)
	}
	return 0
}

// Line is where the value begins, from 1; 0 is no line.
func (v Value) Line() int {
	if v.node == nil {
		return 0
	}
	return v.node.Line
}

// Errorf makes an error at the value: line, key, message.
func (v Value) Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	where := ""
	if v.Line() > 0 {
		where = fmt.Sprintf("line %d: ", v.Line())
	}
	if v.key != "" {
		where += v.key + ": "
	}
	return v.src.Errorf("%s%w", where, err)
}

// Keys are the known keys of a mapping with what reads their values.
type Keys map[string]func(Value) error

// Each hands every value of a mapping to the function of its key, in the order
// of the file, and stops at the first error. A key that is not among the keys
// is an error with a suggestion.
func (v Value) Each(keys Keys) error {
	return v.Entries(func(name string, value Value) error {
		read, ok := keys[name]
		if ok {
			return read(value)
		}
		known := make([]string, 0, len(keys))
		for k := range keys {
			known = append(known, k)
		}
		slices.Sort(known)
		value.key = v.key
		return value.Errorf("unknown key %q%s", Shorten(name), didYouMean(name, known))
	})
}

// Entries hands every entry of a mapping to read, in the order of the file, and
// stops at the first error. A key that is no text or comes twice is an error.
func (v Value) Entries(read func(name string, value Value) error) error {
	if v.IsNull() {
		return nil
	}
	if !v.IsMap() {
		return v.Errorf("it must be a mapping of keys, not %s", v.kind())
	}
	seen := make(map[string]bool, len(v.node.Content)/2)
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		k, node := v.node.Content[i], v.node.Content[i+1]
		at := Value{src: v.src, key: v.key, node: k}
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" || k.Tag == "!!null" {
			return at.Errorf("a key must be text")
		}
		if seen[k.Value] {
			return at.Errorf("the key %q is given twice", Shorten(k.Value))
		}
		seen[k.Value] = true
		child := Value{src: v.src, key: joinKey(v.key, k.Value), node: node}
		if i+2 < len(v.node.Content) {
			child.next = v.node.Content[i+2]
		}
		if node.Line == 0 || child.IsNull() {
			// An empty value has no place of its own.
			copied := *node
			copied.Line = k.Line
			child.node = &copied
		}
		if err := read(k.Value, child); err != nil {
			return err
		}
	}
	return nil
}

func joinKey(outer, name string) string {
	if outer == "" {
		return Shorten(name)
	}
	return outer + "." + Shorten(name)
}

// Items hands every element of a list to read, in order, and stops at the first
// error.
func (v Value) Items(read func(Value) error) error {
	if v.IsNull() {
		return nil
	}
	if !v.IsList() {
		return v.Errorf("it must be a list, not %s", v.kind())
	}
	for i, node := range v.node.Content {
		if err := read(Value{src: v.src, key: fmt.Sprintf("%s[%d]", v.key, i), node: node}); err != nil {
			return err
		}
	}
	return nil
}

// Text returns a scalar as it is written; a number or a date is text too.
func (v Value) Text() (string, error) {
	if v.IsNull() {
		return "", v.Errorf("it has no value")
	}
	if v.node.Kind != yaml.ScalarNode {
		return "", v.Errorf("it must be text, not %s", v.kind())
	}
	return v.node.Value, nil
}

// Filled returns a text that is not empty or blank.
func (v Value) Filled() (string, error) {
	s, err := v.Text()
	if err == nil && strings.TrimSpace(s) == "" {
		err = v.Errorf("it is empty")
	}
	return s, err
}

// OneOf returns a text that is one of the known ones.
func (v Value) OneOf(known ...string) (string, error) {
	s, err := v.Text()
	if err != nil || slices.Contains(known, s) {
		return s, err
	}
	return "", v.Errorf("%q is not one of %s%s", Shorten(s), strings.Join(known, ", "), didYouMean(s, known))
}

// Bool returns true or false.
func (v Value) Bool() (bool, error) {
	s, err := v.Text()
	if err != nil {
		return false, err
	}
	switch s {
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE":
		return false, nil
	}
	return false, v.Errorf("%q is neither true nor false", Shorten(s))
}

// Int returns a whole number of at least least.
func (v Value) Int(least int64) (int64, error) {
	s, err := v.Text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil {
		return 0, v.Errorf("%q is not a whole number", Shorten(s))
	}
	if n < least {
		return 0, v.Errorf("%d is too small; it must be at least %d", n, least)
	}
	return n, nil
}

// Positive returns a finite number above zero.
func (v Value) Positive() (float64, error) {
	n, err := v.NotNegative()
	if err == nil && n == 0 {
		err = v.Errorf("0 is too small; it must be above 0")
	}
	return n, err
}

// NotNegative returns a finite number of zero or above.
func (v Value) NotNegative() (float64, error) {
	s, err := v.Text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, v.Errorf("%q is not a number", Shorten(s))
	}
	if n < 0 {
		return 0, v.Errorf("%s is too small; it must not be negative", Shorten(s))
	}
	return n, nil
}

// Duration returns a time above zero, written like 90s, 10m or 1h30m.
func (v Value) Duration() (time.Duration, error) {
	s, err := v.Text()
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		if _, number := strconv.ParseFloat(s, 64); number == nil {
			return 0, v.Errorf("%q has no unit; write 90s, 10m or 1h30m", Shorten(s))
		}
		return 0, v.Errorf("%q is not a duration; write 90s, 10m or 1h30m", Shorten(s))
	}
	if d <= 0 {
		return 0, v.Errorf("%s is too small; it must be above 0", s)
	}
	return d, nil
}

// Texts returns a list of texts that are not blank.
func (v Value) Texts() ([]string, error) {
	var list []string
	err := v.Items(func(item Value) error {
		s, err := item.Filled()
		list = append(list, s)
		return err
	})
	return list, err
}

// TextMap returns a mapping of any keys to texts, which may be empty.
func (v Value) TextMap() (map[string]string, error) {
	m := map[string]string{}
	err := v.Entries(func(name string, value Value) error {
		s, err := value.Text()
		m[name] = s
		return err
	})
	return m, err
}

// kind names what a value is, for errors.
func (v Value) kind() string {
	switch {
	case v.IsMap():
		return "a mapping"
	case v.IsList():
		return "a list"
	case v.IsNull():
		return "nothing"
	}
	return strconv.Quote(Shorten(v.node.Value))
}
