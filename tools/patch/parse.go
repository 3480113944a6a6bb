package patch

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Texts of the format. Headers carry the space before the path.
const (
	beginMarker  = "*** Begin Patch"
	endMarker    = "*** End Patch"
	addHeader    = "*** Add File: "
	deleteHeader = "*** Delete File: "
	updateHeader = "*** Update File: "
	moveHeader   = "*** Move to: "
	eofMarker    = "*** End of File"
	anchorMark   = "@@"
)

// Parse reads the text of a patch. Line ends may be LF or CR LF, and the patch
// may be wrapped in a shell here-document. Every error is a *ParseError.
func Parse(text string) (*Patch, error) {
	if !utf8.ValidString(text) {
		return nil, &ParseError{Msg: "the patch is not valid UTF-8"}
	}
	lines := strings.Split(strings.TrimSpace(strings.TrimPrefix(text, bom)), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	body, err := unwrap(lines)
	if err != nil {
		return nil, err
	}
	p := &parser{lines: body, number: 2}
	patch := &Patch{}
	for !p.done() {
		section, err := p.section()
		if err != nil {
			return nil, err
		}
		patch.Sections = append(patch.Sections, section)
	}
	return patch, nil
}

// unwrap returns the lines between the begin and end markers.
func unwrap(lines []string) ([]string, error) {
	err := checkMarkers(lines)
	if err != nil && isHeredoc(lines) {
		lines = lines[1 : len(lines)-1]
		err = checkMarkers(lines)
	}
	if err != nil {
		return nil, err
	}
	return lines[1 : len(lines)-1], nil
}

// checkMarkers wants the two markers around lines. Both being there implies that
// there are at least two lines.
func checkMarkers(lines []string) error {
	if strings.TrimSpace(lines[0]) != beginMarker {
		return &ParseError{Msg: "The first line of the patch must be '" + beginMarker + "'"}
	}
	if strings.TrimSpace(lines[len(lines)-1]) != endMarker {
		return &ParseError{Msg: "The last line of the patch must be '" + endMarker + "'"}
	}
	return nil
}

func isHeredoc(lines []string) bool {
	if len(lines) < 4 || !strings.HasSuffix(lines[len(lines)-1], "EOF") {
		return false
	}
	switch lines[0] {
	case "<<EOF", "<<'EOF'", `<<"EOF"`:
		return true
	}
	return false
}

// parser walks over the lines between the markers.
type parser struct {
	lines  []string // what is left
	number int      // number of lines[0] in the patch
}

func (p *parser) done() bool { return len(p.lines) == 0 }

func (p *parser) skip() {
	p.lines = p.lines[1:]
	p.number++
}

func (p *parser) fail(line int, format string, args ...any) error {
	return &ParseError{Line: line, Msg: fmt.Sprintf(format, args...)}
}

// section reads one section, whose header is the first line left.
func (p *parser) section() (Section, error) {
	header := strings.TrimSpace(p.lines[0])
	s := Section{Line: p.number}
	if path, ok := strings.CutPrefix(header, addHeader); ok {
		s.Action, s.Path = Add, path
		p.skip()
		s.Content = p.added()
		return s, nil
	}
	if path, ok := strings.CutPrefix(header, deleteHeader); ok {
		s.Action, s.Path = Delete, path
		p.skip()
		return s, nil
	}
	if path, ok := strings.CutPrefix(header, updateHeader); ok {
		s.Action, s.Path = Update, path
		p.skip()
		return s, p.update(&s)
	}
	return s, p.fail(p.number, "'%s' is not a valid hunk header. Valid hunk headers: '%s{path}', '%s{path}', '%s{path}'",
		header, addHeader, deleteHeader, updateHeader)
}

func (p *parser) added() string {
	var b strings.Builder
	for !p.done() {
		line, ok := strings.CutPrefix(p.lines[0], "+")
		if !ok {
			break
		}
		b.WriteString(line)
		b.WriteByte('\n')
		p.skip()
	}
	return b.String()
}

// update reads what follows an update header: the move line and the chunks.
func (p *parser) update(s *Section) error {
	if !p.done() {
		if to, ok := strings.CutPrefix(p.lines[0], moveHeader); ok {
			s.MoveTo = strings.TrimSpace(to)
			if s.MoveTo == "" {
				return p.fail(p.number, "the move of '%s' names no destination", s.Path)
			}
			p.skip()
		}
	}
	for !p.done() {
		if strings.TrimSpace(p.lines[0]) == "" {
			p.skip()
			continue
		}
		if p.lines[0][0] == '*' {
			break
		}
		chunk, err := p.chunk(len(s.Chunks) == 0)
		if err != nil {
			return err
		}
		s.Chunks = append(s.Chunks, chunk)
	}
	if len(s.Chunks) == 0 {
		return p.fail(s.Line, "Update file hunk for path '%s' is empty", s.Path)
	}
	return nil
}

// chunk reads headers and body of one chunk. Only the first chunk of a file may
// come without a header.
func (p *parser) chunk(first bool) (Chunk, error) {
	c := Chunk{Line: p.number}
	headers := 0
	for !p.done() && isAnchor(p.lines[0]) {
		if text := strings.TrimPrefix(p.lines[0][len(anchorMark):], " "); strings.TrimSpace(text) != "" {
			c.Anchors = append(c.Anchors, text)
		}
		headers++
		p.skip()
	}
	if headers == 0 && !first {
		return c, p.fail(c.Line, "Expected update hunk to start with a @@ context marker, got: '%s'", p.lines[0])
	}
	bodyLine := p.number
	for !p.done() && p.body(&c) {
		if c.EndOfFile {
			break
		}
	}
	if len(c.Lines) > 0 {
		return c, nil
	}
	if p.done() || c.EndOfFile {
		return c, p.fail(bodyLine, "Update hunk does not contain any lines")
	}
	return c, p.fail(bodyLine, "Unexpected line found in update hunk: '%s'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)", p.lines[0])
}

// isAnchor reports whether line is a chunk header: "@@", or "@@ " and a text.
func isAnchor(line string) bool {
	rest, ok := strings.CutPrefix(line, anchorMark)
	return ok && (rest == "" || rest[0] == ' ')
}

// body takes one body line into c, or reports that the chunk ends before it.
func (p *parser) body(c *Chunk) bool {
	line := p.lines[0]
	switch {
	case line == "":
		c.Lines = append(c.Lines, Line{Op: Keep})
	case strings.TrimRight(line, " \t") == eofMarker:
		c.EndOfFile = true
	case line[0] == ' ' || line[0] == '+' || line[0] == '-':
		c.Lines = append(c.Lines, Line{Op: Op(line[0]), Text: line[1:]})
	default:
		return false
	}
	p.skip()
	return true
}
