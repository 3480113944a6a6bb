package event

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// masker finds secrets in text: the values it was given, and tokens whose
// shape tells what they are. It does not change after newMasker and may be
// used concurrently.
type masker struct {
	values []*value
	// byFirst holds the values that can begin with a byte, a backslash for
	// escaped forms included.
	byFirst [256][]*value
	shapes  [256][]*shape
	// pairs marks the two bytes with which a secret can begin, and lead the
	// first of them. Most text has none, and that is all the work it causes.
	pairs [1 << 16 / 64]uint64
	lead  [256]bool
	// plain are the texts whose ends are looked for behind a cut.
	plain []secretText
}

// secretText is a secret as it is, or its part of a base64 text.
type secretText struct{ marker, text string }

// minSecret is the shortest value that is masked. Shorter ones are parts of
// ordinary words and numbers: masking them would destroy the stream and, by
// showing where it is destroyed, tell the secret.
const minSecret = 6

// minPlain is from where on also numbers and words of settings are masked.
const minPlain = 8

// settingWords are values that say how something is set, and hide nothing.
var settingWords = []string{
	"default", "disable", "disabled", "enable", "enabled", "manager", "manual",
	"normal", "optional", "private", "public", "require", "required", "unknown",
	"always", "nobody", "oauth2", "system", "docker", "github", "gitlab", "google",
}

// ordinary tells whether a short value is too ordinary to be masked.
func ordinary(secret string) bool {
	if len(secret) >= minPlain {
		return false
	}
	digits := strings.Trim(secret, "0123456789") == ""
	return digits || slices.Contains(settingWords, strings.ToLower(secret))
}

// newMasker returns a masker for secrets by name.
func newMasker(secrets map[string]string) *masker {
	m := &masker{}
	names := make([]string, 0, len(secrets))
	for name := range secrets {
		names = append(names, name)
	}
	slices.Sort(names) // equal values get the same name each time
	for _, name := range names {
		for _, form := range forms(secrets[name]) {
			m.addValue(newValue(marker(name), form))
			m.addPercent(newPercentValue(marker(name), form))
			m.plain = append(m.plain, secretText{marker(name), form})
		}
		if secret := strings.TrimSpace(secrets[name]); len(secret) >= minSecret && !ordinary(secret) {
			for _, form := range encodedForms(secret) {
				v := newValue(marker(name), form)
				v.wrapped = true
				m.addValue(v)
				m.plain = append(m.plain, secretText{marker(name), form})
				if strings.ContainsAny(form, "+/") {
					m.addPercent(newPercentValue(marker(name), form))
				}
			}
		}
	}
	for i := range knownShapes {
		m.addShape(&knownShapes[i])
	}
	return m
}

// forms are the texts as which a secret can turn up: as it is, with the line
// ends of a terminal, and, for a secret of several lines, each long line by
// itself.
func forms(secret string) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < minSecret || ordinary(secret) {
		return nil
	}
	unix := strings.ReplaceAll(secret, "\r\n", "\n")
	out := []string{unix}
	if !strings.Contains(unix, "\n") {
		return out
	}
	out = append(out, strings.ReplaceAll(unix, "\n", "\r\n"))
	for line := range strings.SplitSeq(unix, "\n") {
		line = strings.TrimSpace(line)
		if len(line) >= 2*minPlain && !strings.HasPrefix(line, "-----") {
			out = append(out, line)
		}
	}
	return out
}

// marker is what stands in place of a secret. It must stay inside a JSON
// string and on one line, whatever the name is. Blanks at the end of a name
// only tell several values of one variable apart.
func marker(name string) string {
	return "[secret:" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r) {
			return r
		}
		return '_'
	}, strings.TrimRight(name, " ")) + "]"
}

func (m *masker) addValue(v *value) {
	m.values = append(m.values, v)
	m.byFirst['\\'] = append(m.byFirst['\\'], v)
	m.mark('\\', 'u')
	m.mark('\\', '\\')
	first := v.units[0]
	if first.slashes > 0 || first.special() {
		for c := range 256 {
			m.mark('\\', byte(c))
		}
	}
	if first.slashes > 0 {
		return
	}
	c := first.text[0]
	m.byFirst[c] = append(m.byFirst[c], v)
	if len(first.text) > 1 {
		m.mark(c, first.text[1])
		return
	}
	m.mark(c, '\\')
	if v.wrapped {
		m.mark(c, '\n')
		m.mark(c, '\r')
	}
	if second := v.units[1]; second.slashes == 0 {
		m.mark(c, second.text[0])
	}
}

func (m *masker) addShape(s *shape) {
	c := s.prefix[0]
	m.shapes[c] = append(m.shapes[c], s)
	m.mark(c, s.prefix[1])
}

func (m *masker) mark(a, b byte) {
	m.lead[a] = true
	n := uint(a)<<8 | uint(b)
	m.pairs[n/64] |= 1 << (n % 64)
}

// next returns the first place from i on where a secret can begin, len(s) if
// there is none.
func (m *masker) next(s string, i int) int {
	for ; i+1 < len(s); i++ {
		n := uint(s[i])<<8 | uint(s[i+1])
		if m.pairs[n/64]&(1<<(n%64)) != 0 {
			return i
		}
	}
	if i < len(s) && m.lead[s[i]] {
		return i
	}
	return len(s)
}

// found is what begins at one place of a text.
type found struct {
	// n is how many bytes belong to a secret, 0 if there is none.
	n      int
	marker string
	// rest eats what follows and still belongs to the secret; it may be nil.
	rest *shape
	// more says that the text ended before it was clear.
	more bool
}

func (m *masker) at(st *maskState, s string, i int) found {
	var f found
	for _, v := range m.byFirst[s[i]] {
		n, more := v.match(s[i:])
		f.more = f.more || more
		if n > f.n {
			f.n, f.marker = n, v.marker
		}
	}
	if f.n > 0 || len(m.shapes[s[i]]) == 0 || !st.boundary(s, i) {
		return f
	}
	for _, sh := range m.shapes[s[i]] {
		n, more := sh.match(s[i:])
		f.more = f.more || more
		if n > 0 && f.n == 0 {
			f.n, f.marker, f.rest = n, sh.marker, sh
		}
	}
	return f
}

// has tells whether s holds a secret.
func (m *masker) has(s string) bool {
	var st maskState
	for i := m.next(s, 0); i < len(s); i = m.next(s, i+1) {
		if m.at(&st, s, i).n > 0 {
			return true
		}
	}
	return false
}

// mask returns s with its secrets masked, and how many there were.
func (m *masker) mask(s string) (string, int64) {
	if !m.has(s) {
		return s, 0
	}
	var st maskState
	return m.push(&st, s, true)
}

// maskState is where a masker stands in a text that comes in chunks.
type maskState struct {
	// held is the end of the text so far that may be the beginning of a
	// secret.
	held string
	// open is the shape whose rest is being swallowed, and eaten the last
	// bytes that it took.
	open  *shape
	eaten []byte
	// before is the end of the text that was released or masked.
	before []byte
}

// lookBack is how many bytes before a token decide whether it stands alone.
const lookBack = 16

// push takes the next chunk of a text and returns what can be shown of the
// text now. The joined returns equal the masked whole, however the text is
// cut. final says that nothing follows.
func (m *masker) push(st *maskState, chunk string, final bool) (string, int64) {
	s := chunk
	if st.held != "" {
		s, st.held = st.held+chunk, ""
	}
	var out []byte
	var hits int64
	i, copied, end := 0, 0, len(s)
scan:
	for i < len(s) {
		if st.open != nil {
			i += st.swallow(s[i:])
			copied = i
			continue
		}
		if i = m.next(s, i); i == len(s) {
			break
		}
		switch f := m.at(st, s, i); {
		case f.more && !final:
			end = i
			break scan
		case f.n == 0:
			i++
		default:
			out = append(append(out, s[copied:i]...), f.marker...)
			i += f.n
			copied = i
			hits++
			st.open, st.eaten = f.rest, st.eaten[:0]
		}
	}
	if !final {
		end = max(copied, wholeRunes(s, end))
		st.held = strings.Clone(s[end:])
	}
	st.remember(s[:end])
	if copied == 0 {
		return s[:end], hits
	}
	return string(append(out, s[copied:end]...)), hits
}

// wholeRunes returns where to cut s[:end] so that no character is split.
func wholeRunes(s string, end int) int {
	for i := end - 1; i >= 0 && i > end-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:end]) {
				return i
			}
			break
		}
	}
	return end
}

func (st *maskState) remember(s string) {
	if len(s) >= lookBack {
		st.before = append(st.before[:0], s[len(s)-lookBack:]...)
		return
	}
	st.before = append(st.before, s...)
	if n := len(st.before) - lookBack; n > 0 {
		st.before = append(st.before[:0], st.before[n:]...)
	}
}

// back returns the byte n places before s[i], 0 at the beginning of the text.
func (st *maskState) back(s string, i, n int) byte {
	if i >= n {
		return s[i-n]
	}
	if n -= i; n <= len(st.before) {
		return st.before[len(st.before)-n]
	}
	return 0
}

// boundary tells whether a token can begin at s[i]: not in the middle of a
// word, but after an escape (\n in JSON, a colour on a terminal).
func (st *maskState) boundary(s string, i int) bool {
	c := st.back(s, i, 1)
	if !wordByte(c) {
		return true
	}
	if st.back(s, i, 2) == '\\' && strings.IndexByte("nrtbf", c) >= 0 {
		return true
	}
	if st.back(s, i, 5) == 'u' && st.back(s, i, 6) == '\\' {
		return true
	}
	if c != 'm' {
		return false
	}
	for n := 2; n <= lookBack; n++ {
		switch c := st.back(s, i, n); {
		case c == '[':
			return true
		case c != ';' && (c < '0' || c > '9'):
			return false
		}
	}
	return false
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
