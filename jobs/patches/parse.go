package patches

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// sum is a hash of something that is compared only; the zero sum is unknown.
type sum [16]byte

func hashOf(parts ...string) sum {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return sum(h.Sum(nil)[:len(sum{})])
}

// region is a run of lines that a patch changes, counted in the file before:
// lines start+1 to end. If both are the same, lines are inserted after start.
type region struct {
	start, end int
	// content is the hash of the lines that come in their stead.
	content sum
}

// change is what a patch does to one file.
type change struct {
	// old is the path before, now the one after; empty is not there.
	old, now string
	// copied tells that old stays.
	copied bool
	// base is the id of the content before, if the patch gives it in full.
	base string
	// mode is the mode after, if it is another one or the file is new.
	mode    string
	regions []region
	// opaque tells that the whole content changes and lines are not known:
	// content is its hash then, if known.
	opaque  bool
	content sum
}

// made is what identifies a file that a change makes.
func (c *change) made() sum {
	parts := []string{c.mode, c.old, c.base, string(c.content[:])}
	for _, r := range c.regions {
		parts = append(parts, fmt.Sprint(r.start, r.end, r.content))
	}
	return hashOf(parts...)
}

// parser reads a patch line by line.
type parser struct {
	rest   []byte
	number int
}

// next returns the next line without its end.
func (p *parser) next() ([]byte, bool) {
	if len(p.rest) == 0 {
		return nil, false
	}
	line, rest, _ := bytes.Cut(p.rest, []byte{'\n'})
	p.rest, p.number = rest, p.number+1
	return line, true
}

// at tells whether the next line begins with one of the words.
func (p *parser) at(words ...string) bool {
	for _, w := range words {
		if bytes.HasPrefix(p.rest, []byte(w)) {
			return true
		}
	}
	return false
}

// atNames tells whether the next two lines are the names of a file.
func (p *parser) atNames() bool {
	if !p.at("--- ") {
		return false
	}
	_, rest, _ := bytes.Cut(p.rest, []byte{'\n'})
	return bytes.HasPrefix(rest, []byte("+++ "))
}

const (
	gitHeader = "diff --git "
	leftOut   = " is left out of this diff: "
)

// parse reads a whole patch. Text between the files is passed over, but for the
// lines in which drover says what a diff does not show.
func parse(diff []byte) ([]change, error) {
	p := &parser{rest: diff}
	var out []change
	for len(p.rest) > 0 {
		var c change
		var err error
		switch {
		case p.at(gitHeader):
			c, err = p.gitFile()
		case p.atNames():
			err = p.body(&c)
		case p.at("@@ "):
			err = errors.New("there are changes before the first file")
		default:
			line, _ := p.next()
			path, ok := unshown(string(line))
			if !ok {
				continue
			}
			c = change{old: path, now: path, opaque: true}
		}
		if err == nil && c.old == "" && c.now == "" {
			err = errors.New("a file has no name")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.number, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// unshown reads the line that stands for a file which a diff leaves out.
func unshown(line string) (path string, ok bool) {
	line, ok = strings.CutPrefix(line, "drover: ")
	if !ok {
		return "", false
	}
	if strings.HasPrefix(line, `"`) {
		path, rest, err := unquote(line)
		return path, err == nil && strings.HasPrefix(rest, leftOut) && path != ""
	}
	i := strings.LastIndex(line, leftOut)
	if i <= 0 {
		return "", false
	}
	return line[:i], true
}

var (
	indexLine = regexp.MustCompile(`^index ([0-9a-f]+)\.\.([0-9a-f]+)( [0-7]+)?$`)
	hunkLine  = regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)
)

// fullID is the length of an id of SHA-1, or more of one of SHA-256.
const fullID = 40

// gitFile reads a file with git's header.
func (p *parser) gitFile() (change, error) {
	line, _ := p.next()
	var c change
	c.old, c.now = headerPaths(string(line[len(gitHeader):]))
	newID := ""
	for len(p.rest) > 0 {
		if p.at(gitHeader, "--- ", "GIT binary patch", "Binary files ") {
			break
		}
		before := *p
		line, _ := p.next()
		known, err := c.extended(string(line), &newID)
		if err != nil {
			return c, err
		}
		if !known {
			*p = before
			break
		}
	}
	var err error
	switch {
	case p.at("--- "):
		return c, p.body(&c)
	case p.at("Binary files "):
		p.next()
		c.opaque = true
	case p.at("GIT binary patch"):
		c.opaque = true
		c.content, err = p.binary()
	}
	if c.opaque && len(newID) >= fullID {
		c.content = hashOf("blob", newID)
	}
	return c, err
}

// extended reads one line of git's header; false is none of it.
func (c *change) extended(line string, newID *string) (bool, error) {
	word := func(prefix string) (string, bool) { return strings.CutPrefix(line, prefix) }
	named := func(to *string, quoted string) (bool, error) {
		path, _, err := takePath(quoted, false)
		*to = path
		return true, err
	}
	if m := indexLine.FindStringSubmatch(line); m != nil {
		if len(m[1]) >= fullID && strings.Trim(m[1], "0") != "" {
			c.base = m[1]
		}
		*newID = m[2]
		return true, nil
	}
	if mode, ok := word("new file mode "); ok {
		c.old, c.mode = "", mode
		return true, nil
	}
	if mode, ok := word("new mode "); ok {
		c.mode = mode
		return true, nil
	}
	if _, ok := word("deleted file mode "); ok {
		c.now = ""
		return true, nil
	}
	if path, ok := word("copy from "); ok {
		c.copied = true
		return named(&c.old, path)
	}
	if path, ok := word("rename from "); ok {
		return named(&c.old, path)
	}
	for _, prefix := range []string{"copy to ", "rename to "} {
		if path, ok := word(prefix); ok {
			return named(&c.now, path)
		}
	}
	for _, prefix := range []string{"old mode ", "similarity index ", "dissimilarity index "} {
		if _, ok := word(prefix); ok {
			return true, nil
		}
	}
	return false, nil
}

// body reads the names of a file and its hunks.
func (p *parser) body(c *change) error {
	renamed := c.old != "" && c.now != "" && c.old != c.now
	for _, side := range []struct {
		prefix string
		path   *string
	}{{"--- ", &c.old}, {"+++ ", &c.now}} {
		line, _ := p.next()
		text, ok := strings.CutPrefix(string(line), side.prefix)
		if !ok {
			return fmt.Errorf("a line with %q is missing", strings.TrimSpace(side.prefix))
		}
		path, _, err := takePath(text, true)
		if err != nil {
			return err
		}
		if !renamed {
			*side.path = path
		}
	}
	for p.at("@@ ") {
		if err := p.hunk(c); err != nil {
			return err
		}
	}
	return nil
}

// hunk reads one hunk. Its lines are counted, so that a line of a file that
// looks like a header is none.
func (p *parser) hunk(c *change) error {
	line, _ := p.next()
	m := hunkLine.FindSubmatch(line)
	if m == nil {
		return errors.New("the numbers of a hunk cannot be read")
	}
	number := func(i, missing int) int {
		if n, err := strconv.Atoi(string(m[i])); err == nil {
			return n
		}
		return missing
	}
	at, old, now := number(1, 0), number(2, 1), number(4, 1)
	if old > 0 {
		at-- // the number is that of the first line, and of the line before if there is none
	}
	if at < 0 {
		return errors.New("a hunk begins before the first line")
	}
	run := runOf(at)
	for old > 0 || now > 0 || p.at(`\`) {
		line, ok := p.next()
		if !ok {
			return errors.New("a hunk ends too early")
		}
		sign := byte(' ')
		if len(line) > 0 {
			sign = line[0]
		}
		switch sign {
		case ' ':
			old, now, at = old-1, now-1, at+1
			run.end(c, at)
		case '-':
			old, at = old-1, at+1
			run.take(at)
		case '+':
			now--
			run.insert(line)
		case '\\':
			run.noEnd()
		default:
			return fmt.Errorf("a line of a hunk begins with %q", sign)
		}
		if old < 0 || now < 0 {
			return errors.New("a hunk has more lines than its numbers say")
		}
	}
	run.end(c, at)
	return nil
}

// binary reads a binary patch and returns the hash of its way forward.
func (p *parser) binary() (sum, error) {
	p.next()
	if !p.at("literal ", "delta ") {
		return sum{}, errors.New("a binary patch has no content")
	}
	h := sha256.New()
	for forward := true; p.at("literal ", "delta "); forward = false {
		for {
			line, ok := p.next()
			if !ok || len(line) == 0 {
				break
			}
			if forward {
				fmt.Fprintf(h, "%s\n", line)
			}
		}
	}
	return sum(h.Sum(nil)[:len(sum{})]), nil
}
