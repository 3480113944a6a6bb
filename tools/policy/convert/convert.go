// Package convert turns the permission files of other products into policies.
//
// Codex reads execpolicy rule files, Claude reads settings with permissions.
// Both keep the meaning: what cannot be said exactly is said more strictly, so
// that nothing is allowed that was not allowed before, and every such place is
// a Note. The result is loaded before it is returned; what the loader refuses
// is a note, too.
//
// The package reads no file and runs nothing. It knows the other products'
// files as text, and drover's policies as package policy has them.
package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"drover/output/fault"
	"drover/tools/policy"
)

// MaxFile bounds a file that is converted, in bytes.
const MaxFile = 256 << 10

// File is a file as it was read.
type File struct {
	Name string
	Data []byte
}

// Note is something that did not survive unchanged.
type Note struct {
	File string
	// Line is where it stands in the file; 0 is the whole file.
	Line int
	// What is the text of the source, Why what became of it.
	What, Why string
	// Lost says that it is missing in the result. Otherwise it is there, and
	// stricter than it was.
	Lost bool
}

// String is the note on one line.
func (n Note) String() string {
	where := n.File
	if n.Line > 0 {
		where = fmt.Sprintf("%s:%d", n.File, n.Line)
	}
	if n.What != "" {
		where += ": " + n.What
	}
	return printable(where + ": " + n.Why)
}

// Result is a converted policy.
type Result struct {
	// Policy is a policy file in YAML. The notes are comments in it.
	Policy []byte
	// Notes are in the order of the source.
	Notes []Note
}

// Lost counts the notes about what is missing in the policy.
func (r Result) Lost() int {
	n := 0
	for _, note := range r.Notes {
		if note.Lost {
			n++
		}
	}
	return n
}

// origin is the place that a rule comes from.
type origin struct {
	file string
	line int
	text string
}

// entry is one rule of the result.
type entry struct {
	origin
	rule policy.Rule
	// examples are argument vectors that the rule has to decide.
	examples [][]string
	// counter are argument vectors that the rule must not be about.
	counter [][]string
}

// builder collects the parts of a policy.
type builder struct {
	// head are comments at the top.
	head []string
	// settings are the top-level keys besides version, rules and tests.
	settings []setting
	entries  []entry
	tests    []*yaml.Node
	notes    []Note
	ids      map[string]bool
}

type setting struct {
	key   string
	value any
}

func (b *builder) lost(o origin, format string, args ...any) {
	b.notes = append(b.notes, Note{File: o.file, Line: o.line, What: o.text, Why: fmt.Sprintf(format, args...), Lost: true})
}

func (b *builder) stricter(o origin, format string, args ...any) {
	b.notes = append(b.notes, Note{File: o.file, Line: o.line, What: o.text, Why: fmt.Sprintf(format, args...)})
}

// add takes a rule that the loader takes; any other is lost.
func (b *builder) add(e entry) {
	for _, other := range b.entries {
		if sameRule(other.rule, e.rule) {
			return
		}
	}
	effect, _ := e.rule["effect"].(string)
	e.rule["id"] = b.id(effect + "-" + slug(e.text))
	if _, err := loadRules(nil, e.rule); err != nil {
		delete(b.ids, e.rule["id"].(string))
		b.lost(e.origin, "not mapped: %s", loaderReason(err))
		return
	}
	b.entries = append(b.entries, e)
}

// sameRule compares two rules but for their ids.
func sameRule(a, b policy.Rule) bool {
	text := func(r policy.Rule) string {
		plain := policy.Rule{}
		for k, v := range r {
			if k != "id" && k != "reason" {
				plain[k] = v
			}
		}
		out, err := yaml.Marshal(plain)
		if err != nil {
			return ""
		}
		return string(out)
	}
	x := text(a)
	return x != "" && x == text(b)
}

// id returns a name that no other rule has.
func (b *builder) id(name string) string {
	if b.ids == nil {
		b.ids = map[string]bool{}
	}
	name = strings.Trim(name, "-")
	free := name
	for i := 2; b.ids[free]; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	b.ids[free] = true
	return free
}

// loaderReason is why the loader refuses a rule, without the line of a file
// that nobody has seen.
func loaderReason(err error) string {
	why := fault.From(err).Why
	if _, rest, ok := strings.Cut(why, ": "); ok && strings.HasPrefix(why, "line ") {
		why = rest
	}
	return why
}

// loadRules loads rules as a policy.
func loadRules(settings []setting, rules ...policy.Rule) (*policy.Policy, error) {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	if err := put(doc, "version", 1); err != nil {
		return nil, err
	}
	for _, s := range settings {
		if err := put(doc, s.key, s.value); err != nil {
			return nil, err
		}
	}
	if err := put(doc, "rules", append([]policy.Rule{}, rules...)); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write policy: %w", err)
	}
	return load(text)
}

// load loads a policy as if it stood in the workspace /workspace. Every
// program counts as found.
func load(text []byte) (*policy.Policy, error) {
	return policy.Load(policy.Sources{Inline: text, InlineName: "converted", Roots: policy.Roots{
		Workspace: workspace, Writable: []string{workspace}, Home: "/home/user",
	}})
}

const workspace = "/workspace"

func put(doc *yaml.Node, key string, value any) error {
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		return fmt.Errorf("write policy: %w", err)
	}
	doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &n)
	return nil
}

// finish tries the rules, writes the policy and loads it.
func (b *builder) finish() (Result, error) {
	if err := b.verify(); err != nil {
		return Result{}, err
	}
	text, err := b.render()
	if err != nil {
		return Result{}, err
	}
	if _, err := load(text); err != nil {
		return Result{}, fmt.Errorf("load converted policy: %w", err)
	}
	return Result{Policy: text, Notes: b.notes}, nil
}

func (b *builder) render() ([]byte, error) {
	var out bytes.Buffer
	for _, line := range b.head {
		fmt.Fprintf(&out, "# %s\n", printable(line))
	}
	for _, part := range []struct {
		title string
		lost  bool
	}{{"Not mapped:", true}, {"Stricter than it was:", false}} {
		if !slices.ContainsFunc(b.notes, func(n Note) bool { return n.Lost == part.lost }) {
			continue
		}
		fmt.Fprintf(&out, "#\n# %s\n", part.title)
		for _, n := range b.notes {
			if n.Lost == part.lost {
				fmt.Fprintf(&out, "#   %s\n", n)
			}
		}
	}
	out.WriteString("version: 1\n")
	for _, s := range b.settings {
		if err := encode(&out, map[string]any{s.key: s.value}, ""); err != nil {
			return nil, err
		}
	}
	if len(b.entries) == 0 {
		out.WriteString("rules: []\n")
	} else {
		out.WriteString("\nrules:\n")
	}
	for _, e := range b.entries {
		fmt.Fprintf(&out, "  # %s\n", printable(place(e.origin)))
		if err := encode(&out, []policy.Rule{e.rule}, "  "); err != nil {
			return nil, err
		}
	}
	if len(b.tests) > 0 {
		out.WriteString("\ntests:\n")
		if err := encode(&out, b.tests, "  "); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func place(o origin) string {
	if o.line == 0 {
		return o.file + ": " + o.text
	}
	return fmt.Sprintf("%s:%d: %s", o.file, o.line, o.text)
}

func encode(out *bytes.Buffer, value any, indent string) error {
	var text bytes.Buffer
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("write policy: %w", err)
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("write policy: %w", err)
	}
	for line := range strings.Lines(text.String()) {
		out.WriteString(indent + line)
	}
	return nil
}

// unreadable is the error of a file that cannot be converted at all.
func unreadable(name string, line int, format string, args ...any) error {
	why := fmt.Sprintf(format, args...)
	if line > 0 {
		why = fmt.Sprintf("line %d: %s", line, why)
	}
	return &fault.Error{Code: "import_unreadable", What: fmt.Sprintf("%q cannot be imported", name), Why: why, Exit: fault.Config}
}
