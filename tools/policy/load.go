package policy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"drover/output/fault"
)

// Sources say where the rules of a run come from.
type Sources struct {
	// Managed is the system's file. It need not exist; if it does it must
	// belong to root and be writable by nobody else.
	Managed string
	// Flags are the files named on the command line; each must exist.
	Flags []string
	// User is the user's file, and Generated the one that "always" answers
	// are written to: its allow rules answer questions, too. Neither need
	// exist.
	User, Generated string
	// Project is the repository's file, if there is one. Unless TrustProject
	// is set it can only tighten.
	Project      string
	TrustProject bool
	// Inline is a policy that stands in a task file, as YAML; InlineName is
	// the name of that file.
	Inline     []byte
	InlineName string
	// Allow, Ask and Deny are rules in the short form of the command line,
	// numbered in this order. Rules are the same in the order in which they
	// were given, numbered before the others.
	Allow, Ask, Deny []string
	Rules            []FlagRule
	// OnAsk, OnDeny and MaxDenials replace what the files say; their zero
	// values do not.
	OnAsk      OnAsk
	OnDeny     OnDeny
	MaxDenials int
	// Preset stands in for a missing policy; empty is workspace.
	Preset string
	// TTY says that a person can be asked at a terminal; rules with a mode
	// look at it.
	TTY bool
	// Yolo allows everything that no deny rule and no protection forbids.
	Yolo bool
	// Tools are names of tools beyond the catalogue that rules may name.
	Tools []string
	Roots Roots
	Env   Env
}

// FlagRule is one rule in the short form of the command line.
type FlagRule struct {
	Effect Effect
	Text   string
}

// The layers of rules, the strongest first.
const (
	layerManaged = "managed"
	layerFlag    = "flag"
	layerUser    = "user"
	layerProject = "project"
	layerBuiltin = "builtin"
)

var layerRank = map[string]int{layerManaged: 0, layerFlag: 1, layerUser: 2, layerProject: 3, layerBuiltin: 4}

// maxFile bounds a policy file, in bytes.
const maxFile = 1 << 20

// Load reads all files and returns the pool of their rules. Its errors are
// *fault.Error of class fault.Config.
func Load(s Sources) (*Policy, error) {
	l := loader{sources: s, roots: newRootSet(s.Roots, s.Env, nil)}
	if err := l.files(); err != nil {
		return nil, err
	}
	counted := 0
	for _, d := range l.docs {
		if d.stands {
			counted++
		}
	}
	preset := ""
	if counted == 0 {
		if preset = s.Preset; s.Yolo {
			preset = presetYolo
		} else if preset == "" {
			preset = presetWorkspace
		}
		if err := l.preset(preset); err != nil {
			return nil, err
		}
	}
	flagged, err := l.flagRules()
	if err != nil {
		return nil, err
	}
	return l.pool(preset, flagged)
}

// loader collects the documents of the pool.
type loader struct {
	sources Sources
	roots   rootSet
	docs    []*document
}

func (l *loader) files() error {
	s := &l.sources
	if err := l.file(s.Managed, layerManaged, false); err != nil {
		return err
	}
	for _, name := range s.Flags {
		if err := l.file(name, layerFlag, true); err != nil {
			return err
		}
	}
	if s.Inline != nil {
		name := s.InlineName
		if name == "" {
			name = "inline"
		}
		if err := l.text(name, layerFlag, s.Inline); err != nil {
			return err
		}
	}
	if err := l.file(s.User, layerUser, false); err != nil {
		return err
	}
	before := len(l.docs)
	if err := l.file(s.Generated, layerUser, false); err != nil {
		return err
	}
	for _, d := range l.docs[before:] {
		// Answers add to a policy; they do not stand in for one.
		d.stands, d.generated = false, true
	}
	return l.file(s.Project, layerProject, false)
}

// file reads one file. One that nobody named may be missing.
func (l *loader) file(name, layer string, named bool) error {
	if name == "" {
		if named {
			return fileError(name, "policy_unreadable", "the name is empty", "name a file: --policy FILE", nil)
		}
		return nil
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fileError(name, "policy_unreadable", "there is no such file", "check the name", err)
	case err != nil:
		return fileError(name, "policy_unreadable", reason(err), "", err)
	case info.IsDir():
		return fileError(name, "policy_unreadable", "it is a folder", "name the file in it", nil)
	case !info.Mode().IsRegular():
		return fileError(name, "policy_unreadable", "it is no regular file", "save the policy as a file", nil)
	case info.Size() > maxFile:
		return fileError(name, "policy_invalid", "it is larger than 1 MiB", "", nil)
	}
	if layer == layerManaged {
		if why := unsafeOwner(name); why != "" {
			return fileError(name, "policy_unsafe_owner", why,
				fmt.Sprintf("as root: chown root %[1]s && chmod go-w %[1]s", name), nil)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return fileError(name, "policy_unreadable", reason(err), "", err)
	}
	return l.text(name, layer, data)
}

// reason returns the innermost cause, without the path that is already named.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// text adds one document.
func (l *loader) text(name, layer string, data []byte) error {
	clean, why := decodeText(data)
	if why != "" {
		return fileError(name, "policy_bad_encoding", why, "save the file as UTF-8", nil)
	}
	d, err := parseDocument(name, layer, clean, &l.roots, l.sources.Tools)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	d.sha256 = hex.EncodeToString(sum[:])
	d.stands = layer != layerProject || l.sources.TrustProject
	d.widens = d.stands
	l.docs = append(l.docs, d)
	return nil
}

// decodeText drops a byte-order mark and refuses everything but UTF-8.
func decodeText(data []byte) (clean []byte, why string) {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return nil, "it is encoded as UTF-16"
	case bytes.IndexByte(data, 0) >= 0:
		return nil, "it holds NUL bytes"
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		line := 1
		for rest := data; ; {
			r, size := utf8.DecodeRune(rest)
			if r == utf8.RuneError && size <= 1 {
				break
			}
			if r == '\n' {
				line++
			}
			rest = rest[size:]
		}
		return nil, fmt.Sprintf("line %d: it is not valid UTF-8", line)
	}
	return data, ""
}

// fileError returns the error of a file that cannot be used.
func fileError(name, code, why, fix string, cause error) error {
	return &fault.Error{
		Code: code, What: fmt.Sprintf("policy file %q cannot be used", name),
		Why: why, Fix: fix, Exit: fault.Config, Err: cause,
	}
}

// preset adds a built-in policy.
func (l *loader) preset(name string) error {
	data, ok := Preset(name)
	if !ok {
		return &fault.Error{
			Code: "policy_unknown_preset", What: fmt.Sprintf("policy preset %q cannot be used", name),
			Why: "there is no such preset", Fix: "use one of " + strings.Join(Presets(), ", "), Exit: fault.Config,
		}
	}
	if err := l.text(name, layerBuiltin, data); err != nil {
		return err
	}
	d := l.docs[len(l.docs)-1]
	d.stands, d.builtin = true, true
	return nil
}

// pool joins the documents.
func (l *loader) pool(preset string, flagged []*rule) (*Policy, error) {
	s := &l.sources
	p := &Policy{
		byKind: map[Kind]*ruleSet{}, env: s.Env, preset: preset,
		yolo: s.Yolo || preset == presetYolo, mode: ModeHeadless, parsers: &sync.Pool{}, tools: s.Tools,
	}
	if s.TTY {
		p.mode = ModeTTY
	}
	locked := l.lock()
	if p.yolo && locked != nil {
		return nil, &fault.Error{
			Code: "policy_locked", What: "--yolo cannot be used",
			Why: fmt.Sprintf("the policy file %q is locked", locked.name), Fix: "run without --yolo", Exit: fault.Config,
		}
	}
	if locked != nil && layerRank[locked.layer] < layerRank[layerFlag] {
		flagged = p.withoutAllow(flagged, "the command line")
	}
	p.settings = poolSettings(l.docs, s, p.yolo)
	p.roots = newRootSet(s.Roots, s.Env, p.settings.addDirs)
	digest := sha256.New()
	for _, d := range l.docs {
		rules := d.rules
		if !d.widens {
			rules = p.withoutAllow(rules, d.describe())
			d.reportIgnored(p)
		}
		p.rules = append(p.rules, rules...)
		if d.generated {
			p.granted = append(p.granted, allowing(rules)...)
		}
		p.tests = append(p.tests, d.tests...)
		if d.network == Deny && !d.builtin {
			p.closesNetwork = append(p.closesNetwork, d.name)
		}
		p.layers = append(p.layers, LayerRef{Path: d.name, Layer: d.layer, SHA256: d.sha256})
		fmt.Fprintf(digest, "%s %s %t\n", d.layer, d.sha256, d.widens)
	}
	p.rules = append(p.rules, flagged...)
	for _, r := range flagged {
		fmt.Fprintf(digest, "%s %s\n", r.effect, r.reason)
		r.reason = ""
	}
	fmt.Fprintf(digest, "%s %s %d %t\n", s.OnAsk, s.OnDeny, s.MaxDenials, p.yolo)
	p.sha256 = hex.EncodeToString(digest.Sum(nil))
	p.index()
	return p, nil
}

// lock applies the strongest locked document: weaker ones may only tighten.
func (l *loader) lock() *document {
	var locked *document
	for _, d := range l.docs {
		if d.locked && d.widens && (locked == nil || layerRank[d.layer] < layerRank[locked.layer]) {
			locked = d
		}
	}
	if locked == nil {
		return nil
	}
	for _, d := range l.docs {
		if layerRank[d.layer] > layerRank[locked.layer] {
			d.widens = false
		}
	}
	return locked
}

// withoutAllow returns the rules that a source may add although it must not
// widen the policy.
func (p *Policy) withoutAllow(rules []*rule, source string) []*rule {
	var kept []*rule
	dropped := 0
	for _, r := range rules {
		if r.effect == Allow {
			dropped++
			continue
		}
		if r.onDeny == DenyContinue {
			// Nobody may declare his own refusals to be harmless.
			r.onDeny = ""
		}
		r.onAsk = ""
		r.rights.network, r.rights.free = false, false
		kept = append(kept, r)
	}
	if dropped > 0 {
		p.notices = append(p.notices, fmt.Sprintf("%s may only tighten the policy: %d allow rules are ignored", source, dropped))
	}
	return kept
}

func allowing(rules []*rule) []*rule {
	var out []*rule
	for _, r := range rules {
		if r.effect == Allow {
			out = append(out, r)
		}
	}
	return out
}

// denyReadID is the id of the rules that deny_read makes.
const denyReadID = "deny_read"

// index sorts the rules by the kind of action they are about.
func (p *Policy) index() {
	for _, d := range p.settings.denyRead {
		p.rules = append(p.rules, &rule{
			block: block{kind: KindRead, access: accessRead, path: []pathGlob{d.glob}},
			id:    denyReadID, effect: Deny, reason: fmt.Sprintf("deny_read names %q", d.glob.text),
			file: d.file, layer: d.layer, line: d.line,
		})
	}
	for _, r := range p.rules {
		set := p.byKind[r.kind]
		if set == nil {
			set = &ruleSet{}
			p.byKind[r.kind] = set
		}
		switch r.effect {
		case Deny:
			set.deny = append(set.deny, r)
		case Ask:
			set.ask = append(set.ask, r)
		case Allow:
			set.allow = append(set.allow, r)
		}
	}
	// Of several rules that match, the one whose refusal weighs most is named:
	// the order in which rules are written means nothing.
	for _, set := range p.byKind {
		slices.SortStableFunc(set.deny, func(a, b *rule) int { return p.onDenyOf(b).rank() - p.onDenyOf(a).rank() })
		slices.SortStableFunc(set.ask, func(a, b *rule) int {
			return cmp.Or(p.onAskOf(b).rank()-p.onAskOf(a).rank(), p.onDenyOf(b).rank()-p.onDenyOf(a).rank())
		})
	}
	for _, dir := range p.roots.protected {
		for _, r := range p.set(KindRead).allow {
			if r.access&accessWrite == 0 || r.mode != "" && r.mode != p.mode {
				continue
			}
			for _, g := range r.path {
				if g.spells(dir) && p.roots.matchGlob(g, filepath.ToSlash(dir), false) {
					p.roots.lifted = appendNew(p.roots.lifted, dir)
				}
			}
		}
	}
}
