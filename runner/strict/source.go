package strict

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxCuts bounds how often Source looks for the end of a value in flow style.
const maxCuts = 8

// Source returns the text of a mapping or list that is the value of an outermost
// key. data is what was parsed. Everything around the value is blanked, so that
// its lines and columns are those of the file. A value whose end cannot be told
// is written anew, and then has lines of its own.
func (v Value) Source(data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	end := len(data)
	if v.next != nil {
		end = offset(data, v.next.Line, v.next.Column)
	}
	text := blankBefore(data[:end], offset(data, v.node.Line, v.node.Column))
	for range maxCuts {
		if v.sameAs(text) {
			return text, nil
		}
		// In flow style a comma or the brackets of the outer value follow.
		last := bytes.LastIndexAny(text, "}]")
		if last < 0 {
			break
		}
		if last == len(text)-1 {
			last = bytes.LastIndexAny(text[:last], "}]")
		}
		text = text[:last+1]
	}
	text, err := yaml.Marshal(v.node)
	if err != nil {
		return nil, v.Errorf("it cannot be read: %w", err)
	}
	return text, nil
}

// offset is the place of a line and column, both from 1, in data. Columns count
// characters.
func offset(data []byte, line, column int) int {
	at := 0
	for ; line > 1 && at < len(data); line-- {
		for at < len(data) {
			n := lineBreak(data[at:])
			if n > 0 {
				at += n
				break
			}
			at++
		}
	}
	for ; column > 1 && at < len(data); column-- {
		_, n := utf8.DecodeRune(data[at:])
		at += n
	}
	return at
}

// lineBreak is the length of the line break that b begins with, or 0. YAML has
// more of them than the newline.
func lineBreak(b []byte) int {
	switch {
	case bytes.HasPrefix(b, []byte("\r\n")):
		return 2
	case b[0] == '\n', b[0] == '\r':
		return 1
	case bytes.HasPrefix(b, []byte("\u0085")):
		return 2
	case bytes.HasPrefix(b, []byte("\u2028")), bytes.HasPrefix(b, []byte("\u2029")):
		return 3
	}
	return 0
}

// blankBefore returns data with a space for every character before start, and
// the line breaks kept.
func blankBefore(data []byte, start int) []byte {
	start = min(start, len(data))
	out := make([]byte, 0, len(data))
	for at := 0; at < start; {
		if n := lineBreak(data[at:]); n > 0 {
			out = append(out, data[at:at+n]...)
			at += n
			continue
		}
		_, n := utf8.DecodeRune(data[at:])
		out = append(out, ' ')
		at += n
	}
	return append(out, data[start:]...)
}

// sameAs tells whether text holds the value and nothing else.
func (v Value) sameAs(text []byte) bool {
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	return dec.Decode(&doc) == nil && errors.Is(dec.Decode(&more), io.EOF) &&
		len(doc.Content) == 1 && equal(doc.Content[0], v.node)
}

func equal(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || a.ShortTag() != b.ShortTag() || a.Line != b.Line || a.Column != b.Column || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !equal(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}
