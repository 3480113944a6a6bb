package policy

import (
	"go.yaml.in/yaml/v3"
)

// Annotations are what a server says of one of its tools; nil is what it does
// not say.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// hints are the annotations that a rule wants, by the name of the hint.
type hints map[string]bool

// hintNames are the annotations that the protocol knows.
var hintNames = []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}

// hint returns an annotation, or what the protocol takes an absent one for.
func (a *Annotations) hint(name string) bool {
	if a == nil {
		a = &Annotations{}
	}
	or := func(said *bool, absent bool) bool {
		if said != nil {
			return *said
		}
		return absent
	}
	readOnly := or(a.ReadOnly, false)
	switch name {
	case "readOnlyHint":
		return readOnly
	case "destructiveHint":
		return or(a.Destructive, !readOnly)
	case "idempotentHint":
		return or(a.Idempotent, false)
	}
	return or(a.OpenWorld, true)
}

// match tells whether a tool has the annotations. What a server says that
// nobody trusts is worth nothing: its tool may be anything, which is enough for
// a suspicion and never for certainty.
func (h hints) match(a *Action, suspicious bool) bool {
	if !a.Trusted {
		return suspicious
	}
	for name, want := range h {
		if a.Annotations.hint(name) != want {
			return false
		}
	}
	return true
}

// names returns the annotations as they stand in a policy file.
func (h hints) names() []string {
	var out []string
	for _, name := range hintNames {
		if want, ok := h[name]; ok {
			out = append(out, name+": "+map[bool]string{true: "true", false: "false"}[want])
		}
	}
	return out
}

func (p *parser) annotations(n *yaml.Node, b *block) {
	known := fields{}
	b.hints = hints{}
	for _, name := range hintNames {
		known[name] = func(n *yaml.Node) {
			want := false
			p.boolean(&want)(n)
			b.hints[name] = want
		}
	}
	p.mapping(n, "annotations", known)
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		p.fail(n, "write: annotations: {readOnlyHint: true}", "annotations is empty")
	}
}
