package policy

import (
	"fmt"
	"strings"
)

// settings are the top-level keys of the pool.
type settings struct {
	defaultEffect    Effect
	approval         string
	granular         Granular
	onAsk            OnAsk
	onDeny           OnDeny
	onSandboxRefusal OnDeny
	maxDenials       int
	opaque           Effect
	safeEnv          []pattern
	network          Effect
	addDirs          []string
	denyRead         []unreadable
}

// unreadable is one glob of deny_read and where it stands.
type unreadable struct {
	glob        pathGlob
	file, layer string
	line        int
}

// defaultSafeEnv are variables that may be set in front of any command.
var defaultSafeEnv = []string{"CI", "LANG", "LC_*", "TZ", "NO_COLOR", "TERM"}

// document is one parsed policy file.
type document struct {
	settings
	name, layer, sha256 string
	locked              bool
	rules               []*rule
	tests               []Test
	// stands says that the document makes a preset unnecessary.
	stands bool
	// widens says that the document may allow; others may only tighten.
	widens bool
	// builtin documents are presets.
	builtin bool
	// generated says that the document holds "always" answers.
	generated bool
}

func (d *document) describe() string {
	return fmt.Sprintf("the %s policy file %q", d.layer, d.name)
}

// reportIgnored notes the keys that a document may not set.
func (d *document) reportIgnored(p *Policy) {
	var keys []string
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"approval", d.approval != ""}, {"network", d.network == Allow}, {"add_dirs", len(d.addDirs) > 0},
		{"on_ask", d.onAsk != ""}, {"shell.safe_env", len(d.safeEnv) > 0}, {"default", d.defaultEffect == Allow},
	} {
		if k.set {
			keys = append(keys, k.name)
		}
	}
	if len(keys) > 0 {
		p.notices = append(p.notices, fmt.Sprintf("%s may only tighten the policy: %s is ignored", d.describe(), strings.Join(keys, ", ")))
	}
}

// poolSettings joins the settings. Where a strictest value exists it counts;
// else the strongest layer does.
func poolSettings(docs []*document, s *Sources, yolo bool) settings {
	var out settings
	for _, d := range docs {
		if d.widens {
			out.widen(&d.settings)
		}
	}
	if out.defaultEffect == "" {
		out.defaultEffect = Deny
	}
	if yolo {
		out.defaultEffect, out.opaque, out.approval = Allow, Allow, ""
	}
	if out.opaque == "" {
		out.opaque = Ask
		if out.defaultEffect == Allow || out.approval != "" {
			out.opaque = Allow
		}
	}
	if out.safeEnv == nil {
		for _, name := range defaultSafeEnv {
			p, err := newPattern(name)
			if err == nil {
				out.safeEnv = append(out.safeEnv, p)
			}
		}
	}
	for _, d := range docs {
		if !d.widens {
			out.tighten(&d.settings)
		}
	}
	if s.OnAsk != "" {
		out.onAsk = s.OnAsk
	}
	if s.OnDeny != "" {
		out.onDeny = s.OnDeny
	}
	if s.MaxDenials > 0 {
		out.maxDenials = s.MaxDenials
	}
	return out
}

// widen joins the settings of a document that may allow.
func (s *settings) widen(d *settings) {
	s.tightenCommon(d)
	if d.defaultEffect.stricter(s.defaultEffect) {
		s.defaultEffect = d.defaultEffect
	}
	if d.opaque.stricter(s.opaque) {
		s.opaque = d.opaque
	}
	if d.network.stricter(s.network) {
		s.network = d.network
	}
	if s.approval == "" {
		s.approval, s.granular = d.approval, d.granular
	}
	if s.onAsk == "" {
		s.onAsk = d.onAsk
	}
	if s.safeEnv == nil {
		s.safeEnv = d.safeEnv
	}
	s.addDirs = union(s.addDirs, d.addDirs)
}

// tighten joins the settings of a document that may only tighten.
func (s *settings) tighten(d *settings) {
	if d.defaultEffect.stricter(s.defaultEffect) {
		s.defaultEffect = d.defaultEffect
	}
	if d.opaque.stricter(s.opaque) {
		s.opaque = d.opaque
	}
	if d.network == Deny {
		s.network = Deny
	}
	s.tightenCommon(d)
}

func (s *settings) tightenCommon(d *settings) {
	if d.onDeny.rank() > s.onDeny.rank() {
		s.onDeny = d.onDeny
	}
	if d.onSandboxRefusal.rank() > s.onSandboxRefusal.rank() {
		s.onSandboxRefusal = d.onSandboxRefusal
	}
	if d.maxDenials > 0 && (s.maxDenials == 0 || d.maxDenials < s.maxDenials) {
		s.maxDenials = d.maxDenials
	}
	s.denyRead = append(s.denyRead, d.denyRead...)
}
