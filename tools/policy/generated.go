package policy

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// generatedHead opens a new file of "always" answers.
const generatedHead = "# Rules that were approved for always. Take out what no longer holds.\n"

// AppendGenerated adds the rule of an "always" answer to the user's generated
// policy file, which it makes if need be, with the correlation id of the answer
// as a comment. The file is replaced as a whole and readable by its owner only;
// processes that add at the same time wait for each other. A rule that the file
// has already is not added again. A file that is no regular file, such as a
// link, or that does not load, is left as it is and an error is returned.
func (p *Policy) AppendGenerated(path string, pr Proposal, correlationID string) error {
	if pr.rule == nil {
		return errors.New("add always rule: the rule was not parsed")
	}
	if shorterScope(ScopeAlways, pr.MaxScope) != ScopeAlways {
		return fmt.Errorf("add always rule: an answer holds for %s at most", pr.MaxScope)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("add always rule: %w", err)
	}
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer unlock()
	old, err := readRegular(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	data, err := p.withRule(path, old, pr, correlationID)
	if err != nil || data == nil {
		return err
	}
	if err := replaceFile(path, data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// readRegular returns the bytes of a file that is no link, and nil if there is
// none.
func readRegular(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > maxFile:
		return nil, errors.New("it is larger than 1 MiB")
	}
	return os.ReadFile(path)
}

// withRule returns the text of the file with one more rule, or nil if it is
// there already. What a person wrote in the file stays, comments included.
func (p *Policy) withRule(path string, old []byte, pr Proposal, correlationID string) ([]byte, error) {
	if len(bytes.TrimSpace(old)) == 0 {
		old = []byte(generatedHead + "version: 1\n")
	}
	text, why := decodeText(old)
	if why != "" {
		return nil, fmt.Errorf("add always rule: %s: %s", path, why)
	}
	before, err := parseDocument(path, layerUser, text, &p.roots, p.tools)
	if err != nil {
		return nil, fmt.Errorf("add always rule: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("add always rule: %w", err)
	}
	top := doc.Content[0]
	rules := child(top, "rules")
	if rules == nil {
		rules = &yaml.Node{Kind: yaml.SequenceNode}
		top.Content = append(top.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "rules"}, rules)
	}
	rules.Style &^= yaml.FlowStyle
	added, ids := pr.Rule.copy(), map[string]bool{}
	for _, n := range rules.Content {
		var held Rule
		if err := n.Decode(&held); err != nil {
			return nil, fmt.Errorf("add always rule: %w", err)
		}
		if held.same(added) {
			return nil, nil
		}
		if id, ok := held["id"].(string); ok {
			ids[id] = true
		}
	}
	added["id"] = freeID(pr.ID, ids)
	delete(added, "max_scope")
	item := new(yaml.Node)
	if err := item.Encode(added); err != nil {
		return nil, fmt.Errorf("add always rule: %w", err)
	}
	if id := oneLine(correlationID); id != "" {
		item.HeadComment = "correlation id: " + id
	}
	rules.Content = append(rules.Content, item)
	return p.written(path, &doc, len(before.rules)+1)
}

// written returns the document as text, after it was read as the next run will
// read it: rules that cannot be loaded would stop every run.
func (p *Policy) written(path string, doc *yaml.Node, rules int) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("add always rule: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("add always rule: %w", err)
	}
	after, err := parseDocument(path, layerUser, out.Bytes(), &p.roots, p.tools)
	switch {
	case err != nil:
		return nil, fmt.Errorf("add always rule: %w", err)
	case len(after.rules) != rules:
		return nil, fmt.Errorf("add always rule: %s holds %d rules instead of %d", path, len(after.rules), rules)
	case out.Len() > maxFile:
		return nil, fmt.Errorf("add always rule: %s is full; take out what no longer holds", path)
	}
	return out.Bytes(), nil
}

func (r Rule) copy() Rule {
	out := make(Rule, len(r))
	for key, value := range r {
		out[key] = value
	}
	return out
}

func freeID(id string, taken map[string]bool) string {
	free := id
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", id, n)
	}
	return free
}

// maxComment bounds a correlation id in a comment, in bytes.
const maxComment = 80

// oneLine returns the printable ASCII of a text that comes from outside, so
// that a comment cannot become a rule.
func oneLine(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c >= ' ' && c <= '~' && b.Len() < maxComment {
			b.WriteRune(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// replaceFile puts a file in place at once: a reader sees the old one or the
// new one, also after a crash.
func replaceFile(path string, data []byte) error {
	var tail [8]byte
	if _, err := rand.Read(tail[:]); err != nil {
		return err
	}
	temp := path + "." + hex.EncodeToString(tail[:]) + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		// The file beside is of no use; that it could not be removed
		// matters less than why it was written in vain.
		_ = os.Remove(temp)
		return err
	}
	return syncFolder(filepath.Dir(path))
}
