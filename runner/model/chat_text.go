package model

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// textJoiner decodes a text that comes as a series of JSON strings. Servers cut
// it anywhere: between the two halves of a surrogate pair, and inside the bytes
// of a character. What is incomplete waits for the next piece.
type textJoiner struct {
	// tail is the undecoded end of the last piece.
	tail string
}

// join returns the text that the string v brings, whole characters only.
func (j *textJoiner) join(v gjson.Result) string {
	inner := v.Raw
	if len(inner) < 2 {
		return ""
	}
	inner = inner[1 : len(inner)-1]
	if j.tail != "" {
		inner = j.tail + inner
		j.tail = ""
	}
	n := openEnd(inner)
	j.tail = strings.Clone(inner[n:])
	return decodeInner(inner[:n])
}

// flush returns what never became a whole character.
func (j *textJoiner) flush() string {
	tail := j.tail
	j.tail = ""
	return decodeInner(tail)
}

// openEnd returns the length of the inside of a JSON string without a character
// at its end that the next piece may complete.
func openEnd(s string) int {
	n := completeLen(s)
	const escape = len(`\ud83d`)
	if n < len(s) || n < escape {
		return n
	}
	last := s[n-escape:]
	if last[0] != '\\' || last[1] != 'u' || last[2]|0x20 != 'd' || strings.IndexByte("89abAB", last[3]) < 0 {
		return n
	}
	slashes := 0
	for slashes < n-escape && s[n-escape-1-slashes] == '\\' {
		slashes++
	}
	if slashes%2 == 1 {
		// The backslash is itself escaped.
		return n
	}
	return n - escape
}

// decodeInner decodes the inside of a JSON string.
func decodeInner(s string) string {
	if strings.IndexByte(s, '\\') >= 0 {
		var text string
		// The inside of a valid string always decodes.
		if json.Unmarshal([]byte(`"`+s+`"`), &text) == nil {
			return text
		}
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkFilter separates reasoning that a server left in the answer, between
// tags at its very beginning. Tags further on are the answer's own.
type thinkFilter struct {
	text, reasoning func(string)
	state           thinkState
	held            string
	// wrote says that the answer has text.
	wrote bool
}

type thinkState int

const (
	// thinkUnknown: nothing but blanks, or a part of the opening tag.
	thinkUnknown thinkState = iota
	thinkInside
	// thinkBehind: blanks between the closing tag and the answer.
	thinkBehind
	thinkNone
)

func (f *thinkFilter) write(s string) {
	for s != "" && f.state != thinkNone {
		s = f.step(s)
	}
	if s != "" {
		f.wrote = true
		f.text(s)
	}
}

// step takes s in the present state and returns what is left of it.
func (f *thinkFilter) step(s string) string {
	s, f.held = f.held+s, ""
	switch f.state {
	case thinkUnknown:
		start := strings.TrimLeft(s, jsonSpace)
		if rest, ok := strings.CutPrefix(start, thinkOpen); ok {
			f.state = thinkInside
			return rest
		}
		if strings.HasPrefix(thinkOpen, start) {
			f.held = s
			return ""
		}
		f.state = thinkNone
		return s
	case thinkInside:
		inside, rest, ok := strings.Cut(s, thinkClose)
		if ok {
			f.reasoning(inside)
			f.state = thinkBehind
			return rest
		}
		keep := partialSuffix(s, thinkClose)
		f.reasoning(s[:len(s)-keep])
		f.held = s[len(s)-keep:]
		return ""
	default:
		s = strings.TrimLeft(s, jsonSpace)
		if s != "" {
			f.state = thinkNone
		}
		return s
	}
}

// flush delivers what was held back for a tag that never came.
func (f *thinkFilter) flush() {
	held := f.held
	f.held = ""
	switch {
	case held == "":
	case f.state == thinkInside:
		f.reasoning(held)
	default:
		f.wrote = f.wrote || strings.TrimSpace(held) != ""
		f.text(held)
	}
}

// partialSuffix returns how many bytes at the end of s begin tag.
func partialSuffix(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
