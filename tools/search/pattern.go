package search

import "strings"

// Patterns of ignore files follow git's matcher to the letter, including its
// oddities: they work on bytes ("é" is two question marks), the part before the
// first special character is compared before the rest is parsed (so "a**/b"
// matches "ab"), and a malformed pattern matches nothing.

// pattern is one line of an ignore file.
type pattern struct {
	// text is the line without "!" and without the "/" at its end.
	text string
	// negated patterns take a path back in.
	negated bool
	// dirOnly patterns match folders alone.
	dirOnly bool
	// anywhere patterns have no slash and are compared with the name alone.
	anywhere bool
	// suffix is set for "*" and a literal end.
	suffix bool
	// prefix is the literal start, all of text if nothing is special.
	prefix string
	// rest is what follows prefix; for anywhere it is the whole pattern.
	rest []token
	fold bool
}

// parsePattern reads one line. It returns false for blank lines, comments and
// patterns that cannot match.
func parsePattern(line string, fold bool) (pattern, bool) {
	if end := strings.IndexByte(line, 0); end >= 0 {
		line = line[:end]
	}
	line = trimSpaces(line)
	if line == "" || line[0] == '#' {
		return pattern{}, false
	}
	p := pattern{fold: fold}
	line, p.negated = strings.CutPrefix(line, "!")
	// The literal part may not reach into the slash that is taken away, but
	// an escape before that slash still counts as special.
	special := strings.IndexAny(line, `*?[\`)
	p.suffix = special == 0 && line[0] == '*' && !strings.ContainsAny(line[1:], `*?[\`)
	p.text, p.dirOnly = strings.CutSuffix(line, "/")
	p.anywhere = !strings.Contains(p.text, "/")
	literal := p.text
	if special >= 0 && special < len(p.text) {
		literal = p.text[:special]
	}
	if p.anywhere {
		if p.prefix = literal; len(literal) == len(p.text) || p.suffix {
			return p.folded(), p.text != ""
		}
		var ok bool
		p.rest, ok = compile(p.text, false, fold)
		return p.folded(), ok
	}
	text := strings.TrimPrefix(p.text, "/")
	p.prefix = strings.TrimPrefix(literal, "/")
	var ok bool
	p.rest, ok = compile(text[len(p.prefix):], true, fold)
	return p.folded(), ok
}

func (p pattern) folded() pattern {
	if p.fold {
		p.text, p.prefix = lower(p.text), lower(p.prefix)
	}
	return p
}

// match tells whether the pattern matches a path relative to the folder of its
// file. name is the last part of path.
func (p *pattern) match(path, name string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	if p.fold {
		path, name = lower(path), lower(name)
	}
	switch {
	case !p.anywhere:
		return strings.HasPrefix(path, p.prefix) && matchTokens(p.rest, path[len(p.prefix):])
	case p.suffix:
		return strings.HasSuffix(name, p.text[1:])
	case len(p.prefix) == len(p.text):
		return name == p.text
	}
	return strings.HasPrefix(name, p.prefix) && matchTokens(p.rest, name)
}

// trimSpaces drops spaces at the end unless they are escaped.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			if i++; i == len(line) {
				return line // a lone backslash at the end keeps everything
			}
			end = i + 1
		case line[i] != ' ':
			end = i + 1
		}
	}
	return line[:end]
}

type kind uint8

const (
	isByte kind = iota
	isAny       // one byte but "/"
	isSet
	isStar // any bytes but "/"
	isAll  // any bytes
	isDeep // nothing, or any bytes up to and with a "/"
)

type token struct {
	kind kind
	lit  byte
	set  *set
}

// set holds one bit for each byte.
type set [4]uint64

func (s *set) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *set) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

// compile parses a glob. With paths, stars stop at slashes and "**" between
// slashes crosses them.
func compile(glob string, paths, fold bool) ([]token, bool) {
	var out []token
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '\\':
			if i++; i == len(glob) {
				return nil, false
			}
			out = append(out, literal(glob[i], fold))
		case '?':
			out = append(out, token{kind: isAny})
		case '*':
			start := i
			for i+1 < len(glob) && glob[i+1] == '*' {
				i++
			}
			star, slash := starAt(glob, start, i, paths)
			out = append(out, token{kind: star})
			if slash {
				i++
			}
		case '[':
			s, end, ok := compileSet(glob, i, fold)
			if !ok {
				return nil, false
			}
			out, i = append(out, token{kind: isSet, set: s}), end
		default:
			out = append(out, literal(c, fold))
		}
	}
	return out, true
}

func literal(c byte, fold bool) token {
	if fold {
		c = lowerByte(c)
	}
	return token{kind: isByte, lit: c}
}

// starAt classifies the stars at glob[start:end+1] and tells whether the slash
// behind them belongs to the token.
func starAt(glob string, start, end int, paths bool) (star kind, slash bool) {
	if !paths {
		return isAll, false
	}
	after := glob[end+1:]
	switch bounded := start == 0 || glob[start-1] == '/'; {
	case end == start || !bounded:
		return isStar, false
	case after == "", strings.HasPrefix(after, `\/`):
		return isAll, false
	case after[0] == '/':
		return isDeep, true
	}
	return isStar, false
}

// compileSet parses a bracket expression that starts at glob[at] and returns
// the index of its closing bracket.
func compileSet(glob string, at int, fold bool) (s *set, end int, ok bool) {
	i := at + 1
	negated := i < len(glob) && (glob[i] == '!' || glob[i] == '^')
	if negated {
		i++
	}
	s = &set{}
	previous := byte(0) // the start of a range, if there is one
	for first := true; ; first = false {
		if i >= len(glob) {
			return nil, 0, false
		}
		c := glob[i]
		switch {
		case c == ']' && !first:
			s.finish(negated)
			return s, i, true
		case c == '\\':
			if i++; i == len(glob) {
				return nil, 0, false
			}
			c = glob[i]
			s.add(c)
		case c == '-' && previous != 0 && i+1 < len(glob) && glob[i+1] != ']':
			if i++; glob[i] == '\\' {
				if i++; i == len(glob) {
					return nil, 0, false
				}
			}
			s.addRange(previous, glob[i], fold)
			c = 0
		case c == '[' && i+1 < len(glob) && glob[i+1] == ':':
			length := strings.IndexByte(glob[i+2:], ']')
			if length < 0 {
				return nil, 0, false
			}
			name, closed := strings.CutSuffix(glob[i+2:i+2+length], ":")
			if !closed {
				s.add('[') // "[" and ":" are members of an ordinary set
				break
			}
			if !s.addClass(name, fold) {
				return nil, 0, false
			}
			i, c = i+2+length, 0
		default:
			s.add(c)
		}
		previous = c
		i++
	}
}

func (s *set) finish(negated bool) {
	if negated {
		for i := range s {
			s[i] = ^s[i]
		}
	}
	s['/'>>6] &^= 1 << ('/' & 63)
}

func (s *set) addRange(from, to byte, fold bool) {
	for b := int(from); b <= int(to); b++ {
		s.add(byte(b))
		if fold && 'A' <= b && b <= 'Z' {
			s.add(lowerByte(byte(b)))
		}
	}
}

// addClass adds a named class of the C locale.
func (s *set) addClass(name string, fold bool) bool {
	in, ok := classes[name]
	if !ok {
		return false
	}
	for b := range 128 {
		if in(byte(b)) || fold && name == "upper" && 'a' <= b && b <= 'z' {
			s.add(byte(b))
		}
	}
	return true
}

var classes = map[string]func(b byte) bool{
	"alnum":  func(b byte) bool { return isAlpha(b) || isDigit(b) },
	"alpha":  isAlpha,
	"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl":  func(b byte) bool { return b < ' ' || b == 0x7f },
	"digit":  isDigit,
	"graph":  func(b byte) bool { return '!' <= b && b <= '~' },
	"lower":  func(b byte) bool { return 'a' <= b && b <= 'z' },
	"print":  func(b byte) bool { return ' ' <= b && b <= '~' },
	"punct":  func(b byte) bool { return '!' <= b && b <= '~' && !isAlpha(b) && !isDigit(b) },
	"space":  func(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' },
	"upper":  func(b byte) bool { return 'A' <= b && b <= 'Z' },
	"xdigit": func(b byte) bool { return isDigit(b) || 'a' <= b|0x20 && b|0x20 <= 'f' },
}

func isAlpha(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// matchTokens matches all of s. It keeps two points to come back to, the last
// star within a part of the path and the last that crosses slashes: once a
// later one of a kind is reached, an earlier one cannot help any more. So its
// time is bounded however hostile the pattern is.
func matchTokens(tokens []token, s string) bool {
	star, starAt := -1, 0
	deep, deepAt := -1, 0
	for i, j := 0, 0; ; {
		if i == len(tokens) && j == len(s) {
			return true
		}
		if i < len(tokens) {
			switch t := &tokens[i]; t.kind {
			case isStar:
				i++
				star, starAt = i, j
				continue
			case isAll, isDeep:
				i++
				deep, deepAt, star = i, j, -1
				continue
			default:
				if j < len(s) && t.matches(s[j]) {
					i, j = i+1, j+1
					continue
				}
			}
		}
		switch {
		case star >= 0 && starAt < len(s) && s[starAt] != '/':
			starAt++
			i, j = star, starAt
			continue
		case deep < 0:
			return false
		}
		step := 1
		if tokens[deep-1].kind == isDeep {
			step = strings.IndexByte(s[deepAt:], '/') + 1
		}
		if step == 0 || deepAt+step > len(s) {
			return false
		}
		deepAt += step
		i, j, star = deep, deepAt, -1
	}
}

func (t *token) matches(b byte) bool {
	switch t.kind {
	case isByte:
		return b == t.lit
	case isAny:
		return b != '/'
	case isSet:
		return t.set.has(b)
	}
	return false
}

// lower folds as git does: ASCII letters only.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for i := range b {
				b[i] = lowerByte(b[i])
			}
			return string(b)
		}
	}
	return s
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
