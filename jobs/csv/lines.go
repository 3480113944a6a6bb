package csv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxLine bounds a line of JSON lines in bytes.
const maxLine = 64 << 20

var errLongLine = fmt.Errorf("it is longer than %d MiB", maxLine>>20)

// lines reads JSON lines: an object per line. Without a header from a first
// reading, the columns are the keys in the order in which they come.
func (t *reading) lines(src *bufio.Reader) error {
	first := t.o.Header == nil
	if !first {
		if err := t.columns(t.o.Header); err != nil {
			return err
		}
	}
	var names []string
	at := map[string]int{}
	for i, name := range t.o.Header {
		at[name] = i
	}
	for number := 1; ; number++ {
		line, err := wholeLine(src)
		if len(bytes.TrimSpace(line)) > 0 {
			keys, values, bad := object(line)
			if bad != nil {
				if stop := t.note("jsonl_row", fmt.Sprintf("line %d: %v", number, bad)); stop != nil {
					return stop
				}
			} else if first {
				for _, k := range keys {
					if _, ok := at[k]; !ok {
						at[k] = len(names)
						names = append(names, k)
					}
				}
				t.found.Rows++ // the second reading looks at their ids
			} else if err := t.object(keys, values, at, number); err != nil {
				return err
			}
		} else if len(line) > 0 {
			t.blank(number)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errLongLine) {
			return t.fail("jsonl_row", fmt.Sprintf("line %d: %v", number, err), "split the table, or give the row a path instead of the text")
		}
		if err != nil {
			return t.unreadable(fmt.Errorf("line %d: %w", number, err))
		}
	}
	if !first || len(t.problems) > 0 {
		return nil
	}
	if len(names) == 0 {
		return t.fail("csv_header", "it has no objects with keys", "write one JSON object per line")
	}
	return t.columns(names)
}

// object hands one object on as a row.
func (t *reading) object(keys, values []string, at map[string]int, line int) error {
	row := Row{Line: line, Values: make([]string, len(t.found.Header))}
	for i, k := range keys {
		col, ok := at[k]
		if !ok {
			return t.note("jsonl_row", fmt.Sprintf("line %d: the key %s is new", line, quoted(k)))
		}
		if len(values[i]) > t.o.MaxCell {
			if row.TooBig == nil {
				row.TooBig = &TooBig{Column: k, Bytes: int64(len(values[i]))}
			}
			continue
		}
		row.Values[col] = values[i]
	}
	return t.hand(row, line)
}

// wholeLine reads a line with its end, up to the limit.
func wholeLine(src *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := src.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLongLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// object reads an object's keys in their order. Strings are values as they are,
// null is the empty value, everything else is compact JSON.
func object(line []byte) (keys, values []string, err error) {
	if !utf8.Valid(line) {
		return nil, nil, errors.New("it is not UTF-8 text")
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, nil, errors.New("it is no JSON object")
	}
	known := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, nil, errors.New("its JSON is broken or torn")
		}
		key, _ := tok.(string)
		if key == "" {
			return nil, nil, errors.New("a key has no name")
		}
		if known[key] {
			return nil, nil, fmt.Errorf("the key %s comes twice", quoted(key))
		}
		known[key] = true
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, nil, errors.New("its JSON is broken or torn")
		}
		value, err := cellOf(raw)
		if err != nil {
			return nil, nil, err
		}
		keys, values = append(keys, key), append(values, value)
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, errors.New("its JSON is broken or torn")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("something follows the object")
	}
	return keys, values, nil
}

func cellOf(raw json.RawMessage) (string, error) {
	switch {
	case string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.String(), err
}
