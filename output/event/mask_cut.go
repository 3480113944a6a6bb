package event

import "strings"

// A secret that lies where a text was cut is there in part. This file masks
// what is left of it, in texts that are whole events' and not deltas: what is
// cut was long, and nobody takes it apart again.

// minPart is the shortest part of a secret that is masked where a text was cut.
// A shorter one tells little, and is more often the end of a word.
const minPart = minPlain

// maxPart bounds how far before a cut a part is looked for, in bytes.
const maxPart = 4 << 10

// cutMark is what stands where something is left out, omittedMark the end of
// the line that stands there in the output of a command.
const (
	cutMark     = "…"
	omittedMark = " bytes omitted]\n"
)

// nextCut returns where the text before the next cut of s ends, and where the
// text behind it begins; -1 if there is no cut.
func nextCut(s string) (end, begin int) {
	end = strings.Index(s, cutMark)
	begin = end + len(cutMark)
	before := s
	if end >= 0 {
		before = s[:end]
	}
	if i := strings.Index(before, omittedMark); i >= 0 {
		if open := strings.LastIndexByte(before[:i], '['); open >= 0 && strings.Trim(before[open+1:i], "0123456789") == "" {
			return len(strings.TrimSuffix(before[:open], "\n")), i + len(omittedMark)
		}
	}
	return end, begin
}

// maskCuts returns s, whose whole secrets are masked already, with the parts
// masked that stand around its cuts, and how many there were.
func (m *masker) maskCuts(s string) (string, int64) {
	if len(m.values) == 0 || !strings.Contains(s, cutMark) && !strings.Contains(s, omittedMark) {
		return s, 0
	}
	var out strings.Builder
	var hits int64
	for {
		end, begin := nextCut(s)
		if end < 0 {
			break
		}
		part, mark := m.head(s[:end])
		out.WriteString(s[:end-part])
		if part > 0 {
			out.WriteString(mark)
			hits++
		}
		out.WriteString(s[end:begin])
		s = s[begin:]
		if part, mark = m.tail(s); part > 0 {
			out.WriteString(mark)
			s = s[part:]
			hits++
		}
	}
	if hits == 0 {
		return out.String() + s, 0
	}
	out.WriteString(s)
	return out.String(), hits
}

// head returns how many bytes at the end of s are the beginning of a secret,
// and its marker.
func (m *masker) head(s string) (n int, mark string) {
	from := max(0, len(s)-maxPart)
	for i := m.next(s, from); i+minPart <= len(s); i = m.next(s, i+1) {
		if len(s)-i-strings.Count(s[i:], `\`) < minPart {
			continue // backslashes may begin anything
		}
		for _, v := range m.byFirst[s[i]] {
			if _, more := v.match(s[i:]); more {
				return len(s) - i, v.marker
			}
		}
	}
	return 0, ""
}

// tail returns how many bytes at the start of s are the end of a secret, and
// its marker.
func (m *masker) tail(s string) (n int, mark string) {
	for _, p := range m.plain {
		for k := 1; k+minPart <= len(p.text) && len(p.text)-k > n; k++ {
			if strings.HasPrefix(s, p.text[k:]) {
				n, mark = len(p.text)-k, p.marker
			}
		}
	}
	return n, mark
}
