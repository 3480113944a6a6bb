package search

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// plainMatch is the meaning of a compiled pattern without regard for time.
func plainMatch(tokens []token, s string) bool {
	if len(tokens) == 0 {
		return s == ""
	}
	rest := tokens[1:]
	switch tokens[0].kind {
	case isStar, isAll:
		for i := 0; i <= len(s); i++ {
			if plainMatch(rest, s[i:]) {
				return true
			}
			if i < len(s) && s[i] == '/' && tokens[0].kind == isStar {
				return false
			}
		}
		return false
	case isDeep:
		if plainMatch(rest, s) {
			return true
		}
		for i := range len(s) {
			if s[i] == '/' && plainMatch(rest, s[i+1:]) {
				return true
			}
		}
		return false
	}
	return s != "" && tokens[0].matches(s[0]) && plainMatch(rest, s[1:])
}

func FuzzIgnorePattern(f *testing.F) {
	for _, p := range trickyPatterns {
		f.Add(p, "sub/deep/x.txt")
	}
	f.Add("a*a*a*a*b", "aaaaaaaaaaaaaaaa")
	f.Add("**/a/**/a/**/b", "a/a/a/a/a/a/a")
	f.Fuzz(func(t *testing.T, line, path string) {
		for _, fold := range []bool{false, true} {
			p, ok := parsePattern(line, fold)
			if !ok {
				continue
			}
			name := path[strings.LastIndexByte(path, '/')+1:]
			p.match(path, name, true)
			if strings.Count(line, "*") > 6 || len(path) > 40 || strings.Contains(path, "//") || strings.HasPrefix(path, "/") {
				continue // plainMatch would take too long, or no such path exists
			}
			for _, s := range []string{path, name} {
				if got, want := matchTokens(p.rest, s), plainMatch(p.rest, s); got != want {
					t.Errorf("%q %q: got %v, want %v", line, s, got, want)
				}
			}
		}
	})
}

func FuzzGitConfig(f *testing.F) {
	f.Add("[core]\n\texcludesFile = \"~/a b\" # c\n[include]path=x\\\ny;\n[a \"b\"] c\n")
	f.Add("[core] ignorecase\n")
	f.Add("\ufeff[x\n=\n\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		parseConfig(text, func(key, _ string) {
			if section, name, ok := strings.Cut(key, "."); !ok || section == "" || name == "" {
				t.Errorf("key %q", key)
			}
		})
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("{src,lib}/**/*.{go,mod}", "src/a/b.go")
	f.Add("**/node_modules/**", "a/node_modules/b")
	f.Add("!a/[b-c]*", "a/b")
	f.Add("[{a]b{c,[,}]}", "{b]")
	f.Add(strings.Repeat("{,}", 40), "x")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		g, err := newGlob(pattern, "/root")
		if err != nil || path == "" || slices.Contains(strings.Split(path, "/"), "") {
			return
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		g.names(path, name)
		chosen := g.match(path, name)
		// The library reads an empty alternative, and one that ends in a slash,
		// differently with and without its braces.
		open := slices.ContainsFunc(g.ways, func(w way) bool { return strings.HasSuffix(w.pattern, "/") }) ||
			slices.ContainsFunc([]string{"{}", "{,", ",,", ",}"}, func(empty string) bool { return strings.Contains(pattern, empty) })
		if plain := strings.TrimPrefix(pattern, "!"); !open && plain != "" && utf8.ValidString(plain+path) && strings.Count(plain, "{") < 6 && !strings.ContainsAny(plain[:1], "./") && !strings.HasSuffix(plain, "/") {
			whole := path
			if !strings.Contains(plain, "/") {
				whole = name
			}
			if want := doublestar.MatchUnvalidated(plain, whole) != strings.HasPrefix(pattern, "!"); chosen != want {
				t.Errorf("%q chooses %q: got %v, want %v", pattern, path, chosen, want)
			}
		}
		if !chosen {
			return
		}
		// A folder above a chosen file must not be passed over.
		for i := range path {
			if path[i] == '/' && !g.mayHold(path[:i]) {
				t.Errorf("%q chooses %q but not %q", pattern, path, path[:i])
			}
		}
	})
}

// The text that is looked for before the pattern runs must lose no line that
// the pattern alone would find.
func FuzzRegexLiteral(f *testing.F) {
	for _, seed := range [][2]string{
		{`func.*Context`, "func x(Context)\nno\n"}, {`(?i)task|desk`, "TAS\u212a\nde\u017fk\nDESK\n"}, {`foo|far|b+`, "fa\nfar\nb\n"}, {`[Ff]oo[0-9]{2,}`, "Foo12\nfoo1\n"},
		{`(a|b)(c|d)(e|f)(g|h)`, "aceg\nbdfh\n"}, {`x*y+(z|)w`, "yw\nyzw\n"}, {`(?i)é+ß`, "ÉSS\nÉß\n"}, {`^\s*$`, "\n \n"}, {`(?:ab){2}|\bq\b`, "abab\nq\n"}, {`a(?i)b(?-i)c`, "aBc\nabC\n"},
		{`[\x80-\xff]a`, "\xe9a\nÿa\n"}, {"\uFFFD", "\xff\n\uFFFD\n"}, {`(?i)[k-s]x`, "\u017fX\nKx\n"},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, query string, data []byte) {
		if len(query) > 60 || len(data) > 500 || query == "" {
			return
		}
		m, err := newMatcher(Options{Query: query, Regex: true})
		if err != nil || m.multiline {
			return
		}
		re := regexp.MustCompile("(?m:" + query + ")")
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		var want []int
		for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if len(data) > 0 && re.MatchString(strings.TrimSuffix(line, "\r")) {
				want = append(want, i+1)
			}
		}
		var got []int
		lines, _ := m.lines(t.Context(), bytes.Clone(data), "f")
		for _, l := range lines {
			got = append(got, l.Number)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q on %q: lines %v, want %v", query, data, got, want)
		}
	})
}

// A pattern that crosses lines is run again and again from where it stopped;
// what one run over everything finds must be among the lines.
func FuzzAcrossLines(f *testing.F) {
	for _, seed := range [][2]string{
		{`a\nb|b\nc`, "a\nb b\nc\nb\nc"}, {`(?s)f\(.*?\)`, "f(\n)f(\n\n) f()"}, {`\Aa|\n`, "a\n\na"}, {`^$|\bx\n`, "x\n\nxx\nx\n"}, {`(?s:.)*?|\n`, "ab\n\n"}, {`\xff\n`, "\xff\nÿ\n"},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, query string, data []byte) {
		if len(query) > 60 || len(data) > 500 || query == "" || bytes.Contains(data, []byte("\r\n")) || bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
			return
		}
		m, err := newMatcher(Options{Query: query, Regex: true})
		if err != nil || !m.multiline {
			return
		}
		got := map[int]bool{}
		lines, _ := m.lines(t.Context(), bytes.Clone(data), "f")
		for i, l := range lines {
			if got[l.Number] = true; i > 0 && lines[i-1].Number >= l.Number {
				t.Errorf("%q on %q: lines %v", query, data, lines)
			}
		}
		count := bytes.Count(data, []byte("\n")) + 1
		for _, loc := range m.re.FindAllIndex(data, -1) {
			if loc[1] > loc[0] && data[loc[1]-1] == '\n' {
				loc[1]--
			}
			for n := 1 + bytes.Count(data[:loc[0]], []byte("\n")); n <= 1+bytes.Count(data[:loc[1]], []byte("\n")); n++ {
				if behind := n == count && (len(data) == 0 || data[len(data)-1] == '\n'); !got[n] && !behind {
					t.Errorf("%q on %q: line %d is missing of %v", query, data, n, loc)
				}
			}
		}
	})
}

func FuzzLiteral(f *testing.F) {
	f.Add("needle", []byte("neneedle\nNeedle\n"), 2)
	f.Add("aab", []byte("aaaaaab\naab"), 0)
	f.Add("k[", []byte("K[\n"), 1)
	f.Fuzz(func(t *testing.T, text string, data []byte, from int) {
		if text == "" || from < 0 || from > len(data) {
			return
		}
		find := newFinder(needle{text: text})
		want := bytes.Index(data[from:], []byte(text))
		if want >= 0 {
			want += from
		}
		if got := find.find(data, from); got != want {
			t.Errorf("%q in %q from %d: got %d, want %d", text, data, from, got, want)
		}
		folded := newFinder(needle{text: lower(text), fold: true})
		want = strings.Index(lower(string(data[from:])), lower(text))
		if want >= 0 {
			want += from
		}
		got := folded.find(data, from)
		if got != want {
			t.Errorf("folded %q in %q from %d: got %d, want %d", text, data, from, got, want)
		}
	})
}
