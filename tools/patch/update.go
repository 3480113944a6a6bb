package patch

import "fmt"

// updated is what the chunks of one section make of a file.
type updated struct {
	edits   []edit
	after   []byte
	lenient bool
	notes   []string
}

// updater carries the position from chunk to chunk of one file.
type updater struct {
	doc     *document
	finder  finder
	strict  bool
	pos     int // where the next chunk is sought
	free    int // lines before this one were matched by an earlier chunk
	edits   []edit
	lenient bool
	notes   []string
}

// update applies chunks to doc. In strict mode a chunk that fits several places
// is an error; otherwise the first place is taken.
func update(doc *document, chunks []Chunk, strict bool) (*updated, error) {
	u := &updater{doc: doc, finder: finder{doc: doc}, strict: strict}
	for _, c := range chunks {
		if err := u.chunk(c); err != nil {
			return nil, err
		}
	}
	edits := doc.settle(u.edits)
	return &updated{edits, doc.apply(edits), u.lenient, u.notes}, nil
}

func (u *updater) chunk(c Chunk) error {
	steps, err := u.finder.follow(c.Anchors, u.pos)
	if err != nil {
		return err
	}
	for _, s := range steps {
		u.pos = s.at + 1
		u.lenient = u.lenient || s.tier > exact
	}
	lines := c.Lines
	if !hasOld(lines) {
		u.insertAtEnd(lines, len(steps) > 0)
		return nil
	}
	at, t, ok := u.seek(lines, c.EndOfFile)
	if !ok {
		if shorter := withoutLastBlank(lines); len(shorter) > 0 && hasOld(shorter) {
			if at, t, ok = u.seek(shorter, c.EndOfFile); ok {
				lines = shorter
			}
		}
	}
	if !ok {
		return u.finder.mismatch(oldLines(c.Lines), u.pos, u.strict)
	}
	if old := oldLines(lines); u.strict && !c.EndOfFile {
		if places := u.finder.places(steps, old, at, t); len(places) > 1 {
			return u.finder.ambiguous(old, places)
		}
	}
	u.lenient = u.lenient || t > exact
	u.replace(at, lines)
	return nil
}

// seek finds the old side of lines. The end of the file is one place, so an
// end-of-file chunk does not look at the position, but it may not overlap what
// an earlier chunk matched.
func (u *updater) seek(lines []Line, endOfFile bool) (int, tier, bool) {
	if !endOfFile {
		return u.finder.seek(oldLines(lines), u.pos, tiers)
	}
	at, t, ok := u.finder.seekEnd(oldLines(lines))
	return at, t, ok && at >= u.free
}

// insertAtEnd adds the lines of a chunk without old lines behind the last line
// that is not blank, wherever its header points.
func (u *updater) insertAtEnd(lines []Line, anchored bool) {
	at := len(u.doc.lines)
	if at > 0 && u.doc.lines[at-1].body == "" {
		at--
	}
	e := edit{lo: at, hi: at}
	for _, l := range lines {
		e.lines = append(e.lines, line{body: l.Text})
	}
	u.edits = append(u.edits, e)
	if anchored {
		u.notes = append(u.notes, fmt.Sprintf("the lines without context went to the end of %s, not below the @@ header", u.doc.name))
	}
}

// replace records the edits of a chunk whose old side starts at the line at.
// Kept lines are in no edit, so their bytes stay whatever the patch spells.
func (u *updater) replace(at int, lines []Line) {
	e := edit{lo: at, hi: at}
	flush := func() {
		if e.lo < e.hi || len(e.lines) > 0 {
			u.edits = append(u.edits, e)
		}
	}
	for _, l := range lines {
		switch l.Op {
		case Keep:
			flush()
			e = edit{lo: e.hi + 1, hi: e.hi + 1}
		case Remove:
			e.hi++
		case Insert:
			e.lines = append(e.lines, line{body: l.Text})
		}
	}
	flush()
	u.pos, u.free = e.hi, e.hi
}

func hasOld(lines []Line) bool {
	for _, l := range lines {
		if l.Op != Insert {
			return true
		}
	}
	return false
}

// oldLines is what the file must hold for lines to fit.
func oldLines(lines []Line) []string {
	old := make([]string, 0, len(lines))
	for _, l := range lines {
		if l.Op != Insert {
			old = append(old, l.Text)
		}
	}
	return old
}

// withoutLastBlank drops a blank last line from the old side, and then a blank
// last line from the new side: models count the end of a file as a blank line.
// It returns nil when the old side does not end in a blank line.
func withoutLastBlank(lines []Line) []Line {
	last := lastIndex(lines, Insert)
	if last < 0 || lines[last].Text != "" {
		return nil
	}
	out := append([]Line(nil), lines...)
	out = dropSide(out, last, Insert)
	if last = lastIndex(out, Remove); last >= 0 && out[last].Text == "" {
		out = dropSide(out, last, Remove)
	}
	return out
}

// lastIndex is the last line that belongs to more than the side other.
func lastIndex(lines []Line, other Op) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Op != other {
			return i
		}
	}
	return -1
}

// dropSide leaves of line i only what belongs to the operation rest.
func dropSide(lines []Line, i int, rest Op) []Line {
	if lines[i].Op == Keep {
		lines[i].Op = rest
		return lines
	}
	return append(lines[:i], lines[i+1:]...)
}
