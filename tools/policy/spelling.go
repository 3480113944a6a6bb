package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Rule is a rule as it stands in a policy file: its keys and their values. In
// JSON and YAML the keys have the order of the manual.
type Rule map[string]any

// keys returns the keys in the order of the manual.
func (r Rule) keys() []string {
	out := make([]string, 0, len(r))
	for key := range r {
		out = append(out, key)
	}
	slices.SortFunc(out, byUse)
	return out
}

// MarshalJSON writes the rule with its keys in the order of the manual.
func (r Rule) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range r.keys() {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, fmt.Errorf("write key %q: %w", key, err)
		}
		value, err := json.Marshal(r[key])
		if err != nil {
			return nil, fmt.Errorf("write %q: %w", key, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// MarshalYAML writes the rule with its keys in the order of the manual.
func (r Rule) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range r.keys() {
		value := new(yaml.Node)
		if err := value.Encode(r[key]); err != nil {
			return nil, fmt.Errorf("write %q: %w", key, err)
		}
		if value.Kind != yaml.ScalarNode {
			flow(value)
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
	}
	return n, nil
}

// flow writes lists and mappings on one line, as people write rules.
func flow(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		flow(c)
	}
}

// same tells whether two rules are about the same things, whatever they are
// called.
func (r Rule) same(other Rule) bool { return r.digest() == other.digest() }

// digest is a hash of all but the name of the rule.
func (r Rule) digest() string {
	about := Rule{}
	for key, value := range r {
		if key != "id" && key != "reason" && key != "max_scope" {
			about[key] = value
		}
	}
	data, err := json.Marshal(about)
	if err != nil {
		// Nothing but text, numbers, lists and mappings is ever in a rule.
		data = fmt.Appendf(nil, "%v", about)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// compile reads the rule as the loader reads one of a file.
func (r Rule) compile(p *Policy) (*rule, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write rule: %w", err)
	}
	return p.compile(data)
}

// compile reads one rule from JSON, as strictly as the loader does.
func (p *Policy) compile(data []byte) (*rule, error) {
	n, err := jsonNode(data)
	if err != nil {
		return nil, fmt.Errorf("read rule: %w", err)
	}
	reader := parser{doc: &document{}, roots: &p.roots, tools: p.tools}
	if !reader.plain(n) {
		return nil, fmt.Errorf("read rule: %s", reader.problems[0].why)
	}
	out := reader.rule(n)
	if len(reader.problems) > 0 {
		first := reader.problems[0]
		if first.fix == "" {
			return nil, fmt.Errorf("read rule: %s", first.why)
		}
		return nil, fmt.Errorf("read rule: %s; %s", first.why, first.fix)
	}
	return out, nil
}

// maxRule bounds a rule in JSON, in bytes, and maxRuleDepth how deep it nests.
const (
	maxRule      = 64 << 10
	maxRuleDepth = 16
)

// jsonNode turns JSON into the form that the loader reads. Unlike a decoder it
// keeps a key that is given twice, so that the loader can refuse it.
func jsonNode(data []byte) (*yaml.Node, error) {
	if len(data) > maxRule {
		return nil, errors.New("it is longer than 64 KiB")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	n, err := nextNode(dec, maxRuleDepth)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return n, nil
}

func nextNode(dec *json.Decoder, depth int) (*yaml.Node, error) {
	if depth == 0 {
		return nil, errors.New("it nests too deeply")
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: 1}
	switch t := token.(type) {
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for dec.More() {
			child, err := nextNode(dec, depth-1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err = dec.Token()
		return n, err
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!int", t.String()
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(t)
	default:
		n.Tag = "!!null"
	}
	return n, nil
}
