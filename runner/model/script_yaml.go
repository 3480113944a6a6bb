package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// isYAML tells the two forms of a script apart: by the file's ending, else by
// the first character, because a JSON line begins with a brace.
func isYAML(path string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return true
	case ".jsonl", ".ndjson", ".json":
		return false
	}
	data = bytes.TrimLeft(data, jsonSpace)
	return len(data) > 0 && data[0] != '{'
}

// yamlDocuments adds each document as a line. A document goes through the same
// strict checks as a JSON line, so it is turned into JSON first.
func (p *scriptParser) yamlDocuments(data []byte) (where string, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for n := 1; ; n++ {
		where = "document " + strconv.Itoa(n)
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return "", nil
		} else if err != nil {
			return where, mistake("%v", err)
		}
		if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
			continue
		}
		root := doc.Content[0]
		if root.Tag == "!!null" {
			// Two separators in a row, or one at the end.
			continue
		}
		where += " (line " + strconv.Itoa(root.Line) + ")"
		w := jsonWriter{budget: maxScriptBytes}
		if err := w.write(root, 0); err != nil {
			return where, err
		}
		if err := p.add(where, w.Bytes()); err != nil {
			return where, err
		}
	}
}

// jsonWriter writes YAML nodes as JSON. Unlike decoding into Go values it keeps
// the order of keys and the spelling of strings that look like dates.
type jsonWriter struct {
	bytes.Buffer
	// budget bounds the nodes written: aliases of aliases grow without end.
	budget int
}

const maxYAMLDepth = 200

func (w *jsonWriter) write(n *yaml.Node, depth int) error {
	w.budget -= 1 + len(n.Value)
	if depth > maxYAMLDepth || w.budget < 0 {
		return mistake("line %d: it is nested too deeply or its aliases grow too large", n.Line)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.write(n.Alias, depth+1)
	case yaml.MappingNode:
		return w.writeMapping(n, depth)
	case yaml.SequenceNode:
		w.WriteByte('[')
		for i, v := range n.Content {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := w.write(v, depth+1); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	default:
		return w.writeScalar(n)
	}
}

func (w *jsonWriter) writeMapping(n *yaml.Node, depth int) error {
	w.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return mistake("line %d: a key must be plain text", key.Line)
		}
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(quoteJSON(key.Value))
		w.WriteByte(':')
		if err := w.write(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func (w *jsonWriter) writeScalar(n *yaml.Node) error {
	switch n.Tag {
	case "!!null":
		w.WriteString("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return mistake("line %d: %v", n.Line, err)
		}
		fmt.Fprint(w, b)
	case "!!int":
		return w.writeInt(n)
	case "!!float":
		return w.writeFloat(n)
	case "!!str", "!!timestamp":
		w.WriteString(quoteJSON(n.Value))
	default:
		return mistake("line %d: the tag %s is not known here", n.Line, n.Tag)
	}
	return nil
}

func (w *jsonWriter) writeInt(n *yaml.Node) error {
	var i int64
	if err := n.Decode(&i); err == nil {
		fmt.Fprint(w, i)
		return nil
	}
	var u uint64
	if err := n.Decode(&u); err != nil {
		return mistake("line %d: the number %s is too large", n.Line, n.Value)
	}
	fmt.Fprint(w, u)
	return nil
}

func (w *jsonWriter) writeFloat(n *yaml.Node) error {
	var f float64
	if err := n.Decode(&f); err != nil || f != f || f-f != 0 {
		return mistake("line %d: %s is no number that JSON knows", n.Line, n.Value)
	}
	w.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
	return nil
}
