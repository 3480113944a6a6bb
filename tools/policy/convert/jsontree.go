package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// value is a JSON value with the line that it stands in.
type value struct {
	line int
	// data is a string, a float64, a bool, nil, []value or []member.
	data any
}

type member struct {
	key   string
	value value
}

// treeReader reads JSON and keeps lines.
type treeReader struct {
	text []byte
	dec  *json.Decoder
	// seen and line are how far lines have been counted.
	seen, line int
}

// readTree reads one JSON document. A key that stands twice is an error: which
// of the two counts is for each reader to say.
func readTree(text []byte) (value, int, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return value{}, 0, errors.New("it is not UTF-8 text")
	}
	r := &treeReader{text: text, dec: json.NewDecoder(bytes.NewReader(text)), line: 1}
	v, err := r.value(0)
	if err == nil {
		if _, more := r.dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the JSON document")
		}
	}
	if err != nil {
		return value{}, r.here(), err
	}
	return v, 0, nil
}

// here is the line of the latest token.
func (r *treeReader) here() int {
	end := min(int(r.dec.InputOffset()), len(r.text))
	r.line += bytes.Count(r.text[r.seen:max(end, r.seen)], []byte("\n"))
	r.seen = max(end, r.seen)
	return r.line
}

// maxJSON bounds how deep values may be nested.
const maxJSON = 100

func (r *treeReader) value(depth int) (value, error) {
	if depth > maxJSON {
		return value{}, errors.New("it is nested too deep")
	}
	token, err := r.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends too early")
		}
		return value{}, err
	}
	v := value{line: r.here()}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			list := []value{}
			for r.dec.More() {
				e, err := r.value(depth + 1)
				if err != nil {
					return v, err
				}
				list = append(list, e)
			}
			v.data = list
		} else if v.data, err = r.members(depth); err != nil {
			return v, err
		}
		_, err = r.dec.Token() // the closing bracket
		return v, err
	default:
		v.data = t
	}
	return v, nil
}

func (r *treeReader) members(depth int) ([]member, error) {
	out := []member{}
	known := map[string]bool{}
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		if known[key] {
			return nil, fmt.Errorf("the key %q stands twice", key)
		}
		known[key] = true
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, member{key, v})
	}
	return out, nil
}
