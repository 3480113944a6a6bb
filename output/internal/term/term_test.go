package term

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
)

func TestLabelShowsEverything(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "go test ./...", "go test ./..."},
		{"a path with backslashes", `C:\temp`, `C:\temp`},
		{"backslashes beside an escape", "C:\\temp\n", `C:\\temp\n`},
		{"a newline that is text", `a\nb`, `a\nb`},
		{"control characters", "a\tb\rc\x00d\x07e\x7ff\u0085g", `a\tb\rc\x00d\x07e\x7ff\u0085g`},
		{"a colour", "\x1b[31mred", `\e[31mred`},
		{"the clipboard", "\x1b]52;c;aGk=\x07", `\e]52;c;aGk=\x07`},
		{"8-bit control sequence", "\u009b2J", `\u009b2J`},
		{"the same as a byte", "\x9b2J", `\x9b2J`},
		{"the clipboard, 8-bit", "\u009d52;c;aGk=\u009c", `\u009d52;c;aGk=\u009c`},
		{"device control", "\x1bPq\x1b\\", `\ePq\e\\`},
		{"text that is turned round, all ways", "\u202a\u202b\u202c\u202d\u2066\u2067\u2068\u2069", `\u202a\u202b\u202c\u202d\u2066\u2067\u2068\u2069`},
		{"line separators", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"letters without a look", "a\u115f\u3164\u061c", `a\u115f\u3164\u061c`},
		{"a heart is one, a letter is none", "❤\ufe0f a\ufe0f", "❤\ufe0f a\\ufe0f"},
		{"a heap of marks", "e" + strings.Repeat("\u0301", maxMarks+1), "e" + strings.Repeat("\u0301", maxMarks) + `\u0301`},
		{"text that is turned round", "fix\u202e-yb", `fix\u202e-yb`},
		{"zero width", "a\u200bb\u00adc\ufeffd\u200de", `a\u200bb\u00adc\ufeffd\u200de`},
		{"tags", "a\U000e0041b", `a\U000e0041b`},
		{"invalid bytes", "a\xffb", `a\xffb`},
		{"other letters", "größe 世界 😀", "größe 世界 😀"},
		{"a replacement character", "a\ufffdb", "a\ufffdb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Label(tt.in)); d != "" {
				t.Error(d)
			}
		})
	}
	if d := cmp.Diff("a\\e\nb", Lines("a\x1b\nb")); d != "" {
		t.Error(d)
	}
}

func TestTextKeepsProse(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"lines", "a\nb\n", "a\nb\n"},
		{"tabs", "a\tb\n\tc\n世\td", "a       b\n        c\n世      d"},
		{"colours", "\x1b[1;31mred\x1b[0m", "red"},
		{"carriage returns and bells", "a\r\nb\a", "a\nb"},
		{"title, ended by BEL", "a\x1b]0;title\ab", "ab"},
		{"clipboard, ended by ST", "a\x1b]52;c;eA==\x1b\\b", "ab"},
		{"device control", "a\x1bPq#0\x1b\\b", "ab"},
		{"8-bit forms", "a\u009b31mb\u009d0;x\u009cc\u0090q\u009cd", "abcd"},
		{"other escapes", "a\x1bcb\x1b(0c\x1b7d", "abcd"},
		{"an open string ends with its line", "a\x1b]0;x\nb", "a\nb"},
		{"an open string ends somewhere", "a\x1b]0;" + strings.Repeat("x", 5000) + "END", "a" + strings.Repeat("x", 5000-maxString+2) + "END"},
		{"a control character inside a sequence", "a\x1b[3\a1mb", "ab"},
		{"a sequence inside a sequence", "a\x1b[3\x1b[31mb", "ab"},
		{"text that is turned round", "a\u202eb\u2066c", `a\u202eb\u2066c`},
		{"joiners of ordinary text", "a\u200c\u200d\u200e\u200fb", "a\u200c\u200d\u200e\u200fb"},
		{"hidden text", "a\u200b\u00ad\u2028\u2060\ufeff\U000e0041b", "ab"},
		{"invalid bytes", "a\xff\xc3", "a\ufffd\ufffd"},
		{"a family", "👩‍👩‍👧", "👩‍👩‍👧"},
		{"a selector without emoji", "❤\ufe0fa\ufe0f", "❤\ufe0fa"},
		{"a heap of marks", "e" + strings.Repeat("\u0301", 1000), "e" + strings.Repeat("\u0301", maxMarks)},
		{"a cut sequence", "\x1b[31mred\x1b[3", "red"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Text(tt.in)); d != "" {
				t.Error(d)
			}
		})
	}
}

func disciplined(chunks ...string) []string {
	d := NewDiscipline()
	for _, c := range chunks {
		d.Write(c)
	}
	lines, _ := d.Tail(maxLines)
	return lines
}

func TestOutputIsWhatATerminalWouldShow(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want []string
	}{
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"an unfinished line", "a\nb", []string{"a", "b"}},
		{"line ends of a terminal", "a\r\nb\r\n", []string{"a", "b"}},
		{"empty lines", "a\n\nb\n", []string{"a", "", "b"}},
		{"progress", "progress 1\rprogress 2\r\x1b[Kdone\n", []string{"done"}},
		{"a shorter text over a longer", "12345\rab\n", []string{"ab345"}},
		{"progress with blanks", "progress 1\rprogress 2\r \x1b[K done", []string{"  done"}},
		{"a colour that is not closed", "\x1b[31mred", []string{"red"}},
		{"a colour that is cut", "\x1b[31mred\x1b[3", []string{"red"}},
		{"the clipboard", "a\x1b]52;c;aGk=\ab\x1b]52;c;aGk=\x1b\\c\u009d52;c;aGk=\u009cd\x1bPq\x1b\\e\n", []string{"abcde"}},
		{"an open string ends with its line", "a\x1b]52;c;aGk=\nb\n", []string{"a", "b"}},
		{"an open string ends somewhere", "\x1b]52;" + strings.Repeat("x", maxString) + "END\n", []string{"xxxEND"}},
		{"a cursor that goes up", "1\n2\x1b[1A\r3\n", []string{"1", "3"}},
		{"erase to the end", "12345\rab\x1b[K\n", []string{"ab"}},
		{"erase to the beginning", "12345\b\b\x1b[1K\n", []string{"    5"}},
		{"erase all", "12345\x1b[2Kx\n", []string{"     x"}},
		{"backspaces", "abc\b\bX\n", []string{"aXc"}},
		{"tabs", "a\tb\n1234567\t8\n", []string{"a       b", "1234567 8"}},
		{"a tab after a return", "abcdefghij\r\tX\n", []string{"abcdefghXj"}},
		{"colours", "\x1b[31mred\x1b[0m\n", []string{"red"}},
		{"cursor movement", "a\x1b[2Ab\x1b[10;10Hc\n", []string{"abc"}},
		{"screen switches", "a\x1b[?1049h\x1bcb\n", []string{"ab"}},
		{"wide characters overwritten", "世界\rab\n", []string{"ab界"}},
		{"half of a wide character", "世界\rabc\n", []string{"abc"}},
		{"a wide one over narrow ones", "abcd\r世\n", []string{"世cd"}},
		{"combining marks", "e\u0301x\rY\n", []string{"Yx"}},
		{"a family", "👩‍👩‍👧 ok\n", []string{"👩‍👩‍👧 ok"}},
		{"a joiner without emoji", "a\u200db\u200bc\n", []string{"abc"}},
		{"text that is turned round", "a\u202eb\n", []string{`a\u202eb`}},
		{"a joiner after letters", "世\u200d界\ufe0f\n", []string{"世界"}},
		{"flags and keys", "🇩🇪 1\ufe0f\u20e3 ❤\ufe0f\n", []string{"🇩🇪 1\ufe0f\u20e3 ❤\ufe0f"}},
		{"a letter after a joiner", "\rx\b👩\u200da\n", []string{"👩\u200da"}},
		{"a heap of marks", "e" + strings.Repeat("\u0301", 1000) + "\n", []string{"e" + strings.Repeat("\u0301", maxMarks)}},
		{"separators", "a\u2028b\u2029c\u00add\ufeffe\U000e0041f\n", []string{"abcdef"}},
		{"NUL and DEL", "a\x00\x7fb\n", []string{"ab"}},
		{"invalid bytes", "a\xffb\n", []string{"a\ufffdb"}},
		{"a mark at the beginning", "\u0301a\n", []string{"a"}},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, disciplined(tt.in)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.want, disciplined(strings.Split(tt.in, "")...)); d != "" {
				t.Errorf("character by character: %s", d)
			}
			var bytes []string
			for i := range len(tt.in) {
				bytes = append(bytes, tt.in[i:i+1])
			}
			if d := cmp.Diff(tt.want, disciplined(bytes...)); d != "" {
				t.Errorf("byte by byte: %s", d)
			}
		})
	}
}

func TestOnlyTheNewestLinesAreKept(t *testing.T) {
	d := NewDiscipline()
	for i := range 2000 {
		d.Write(fmt.Sprintf("line %d\n", i))
	}
	lines, total := d.Tail(3)
	if diff := cmp.Diff([]string{"line 1997", "line 1998", "line 1999"}, lines); diff != "" || total != 2000 {
		t.Errorf("%s, %d lines", diff, total)
	}
	if lines, _ := d.Tail(2000); len(lines) != maxLines || lines[0] != "line 1800" {
		t.Errorf("%d lines are kept, from %q", len(lines), lines[0])
	}
	for _, long := range []string{
		strings.Repeat("x", 10<<10) + "\n", strings.Repeat("é", 5<<10) + "\r\n", strings.Repeat("\t", 5<<10) + "x\n",
		"\r" + strings.Repeat("界", 5<<10) + "\n", "\r" + strings.Repeat("e\u0301\u0301\u0301", 5<<10) + "\n",
		"👩" + strings.Repeat("\u200d👩", 5<<10) + "\n", "\r" + strings.Repeat("\u200d👩", 5<<10) + "\n",
	} {
		for range 60 {
			d.Write(long[:len(long)-1])
			held(t, d)
			d.Write("\n")
			held(t, d)
		}
	}
	if _, total := d.Tail(1); total != 2000+7*60 {
		t.Errorf("%d lines", total)
	}
}

func TestTheBeginningOfAnOutputCanBeHad(t *testing.T) {
	for _, tt := range []struct {
		in    string
		n     int
		want  []string
		total int
	}{
		{"", 5, nil, 0},
		{"\r\n\n", 5, nil, 0},
		{"\na\r\n1\r2\x1b]52;c;x\nc\n", 5, []string{"a", "2", "c"}, 3},
		{"a\nb\nc\nd", 2, []string{"a", "b"}, 4},
		{strings.Repeat("a\n", 1000), 1, []string{"a"}, 1000},
	} {
		lines, total := Output(tt.in, tt.n)
		if d := cmp.Diff(tt.want, lines); d != "" || total != tt.total {
			t.Errorf("%q: %s, %d lines, want %d", tt.in, d, total, tt.total)
		}
	}
}

// held fails if a discipline keeps more than it may.
func held(t *testing.T, d *Discipline) {
	t.Helper()
	size, cells := 0, 0
	for _, l := range d.done {
		size += len(l)
		if len(l) > maxLineBytes {
			t.Fatalf("a line of %d bytes is kept", len(l))
		}
	}
	for _, c := range d.cells {
		cells += len(c)
	}
	if size > maxKept || len(d.done)-d.first > maxLines || cap(d.done) > 5*maxLines {
		t.Fatalf("%d bytes in %d lines are kept", size, len(d.done))
	}
	if len(d.line) > maxLineBytes || len(d.current()) > maxLineBytes || cells > maxColumn*utf8.UTFMax+maxLineBytes+maxCell {
		t.Fatalf("%d bytes and %d in cells are kept of a line", len(d.line), cells)
	}
}

func TestWidthsCutAndWrap(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int
	}{{"abc", 3}, {"世界", 4}, {"e\u0301", 1}, {"😀", 2}, {"👩‍👩‍👧", 2}, {"", 0}, {"🇩🇪", 2}, {"ﾊﾝ", 2}} {
		if got := Width(tt.in); got != tt.want {
			t.Errorf("width of %q is %d, want %d", tt.in, got, tt.want)
		}
	}
	for _, tt := range []struct {
		in    string
		cells int
		want  string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdef", 5, "abcd…"}, {"世界世界", 5, "世界…"}, {"世界世界", 4, "世…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"}, {"👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"}, {"abc", 1, "…"}, {"abc", 0, ""}, {"", 0, ""},
	} {
		if got := Cut(tt.in, tt.cells, "…"); got != tt.want {
			t.Errorf("Cut(%q, %d) is %q, want %q", tt.in, tt.cells, got, tt.want)
		}
	}
	for _, tt := range []struct {
		in    string
		cells int
		want  string
	}{{"abcdef", 4, "…def"}, {"世界世界", 4, "…界"}, {"abc", 3, "abc"}, {"abc", 0, ""}} {
		if got := CutLeft(tt.in, tt.cells, "…"); got != tt.want {
			t.Errorf("CutLeft(%q, %d) is %q, want %q", tt.in, tt.cells, got, tt.want)
		}
	}
	if d := cmp.Diff([]string{"one two", "three"}, Wrap("one two three", 8)); d != "" {
		t.Error(d)
	}
	if got := Pad("世", 4); got != "世  " {
		t.Errorf("got %q", got)
	}
}

// unsafeRune finds what must never reach a terminal.
func unsafeRune(s string, newline bool) (rune, bool) {
	for _, r := range s {
		if r == '\n' && newline {
			continue
		}
		if isControl(r) || isBidi(r) || r == 0x2028 || r == 0x2029 {
			return r, true
		}
	}
	return 0, !utf8.ValidString(s)
}

var hostile = []string{
	"\x1b]52;c;aGk=\x07", "\x1b]0;t\x1b\\", "\x1b[2J\x1b[?1049h", "\x1bP1;2q\x1b\\", "\u009b31m\u009c", "a\r\x1b[Kb",
	"\xff\xc3\x28\xe4\xb8", "世界\b\b\x1b[1K", "\u202e\u2066\u200b\ufeff", "👩‍👩‍👧\ufe0f\u200d", "\t\v\f\x00\x7f\u0085", "\x1b[\x18\x1b(0\x1b",
}

// cut cuts a text anywhere, always alike for the same seed.
func cut(s string, seed uint64) (chunks []string) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	for s != "" {
		n := 1 + rnd.IntN(len(s))
		chunks = append(chunks, s[:n])
		s = s[n:]
	}
	return chunks
}

func addHostile(f *testing.F) {
	for i, s := range hostile {
		f.Add(s, uint64(i))
		f.Add(s+hostile[(i+1)%len(hostile)], uint64(i))
	}
}

func FuzzOutput(f *testing.F) {
	addHostile(f)
	f.Fuzz(func(t *testing.T, s string, seed uint64) {
		whole := disciplined(s)
		for _, line := range whole {
			if r, bad := unsafeRune(line, false); bad {
				t.Fatalf("output %q holds %U", s, r)
			}
		}
		chunks := cut(s, seed)
		if d := cmp.Diff(whole, disciplined(chunks...)); d != "" {
			t.Fatalf("cut as %q: %s", chunks, d)
		}
		d := NewDiscipline()
		for range 3 {
			d.Write(s)
			held(t, d)
		}
		all := strings.Trim(s, "\r\n")
		if first, total := Output(s, maxLines); total <= maxLines && len(first) > 0 {
			if d := cmp.Diff(disciplined(all+"\n"), first); d != "" {
				t.Fatalf("the beginning of %q: %s", s, d)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	addHostile(f)
	f.Fuzz(func(t *testing.T, s string, _ uint64) {
		whole := Text(s)
		if r, bad := unsafeRune(whole, true); bad {
			t.Fatalf("Text(%q) holds %U", s, r)
		}
		// A text is shown line by line as its lines are completed.
		var lines []string
		for _, line := range strings.Split(s, "\n") {
			lines = append(lines, Text(line))
		}
		if d := cmp.Diff(whole, strings.Join(lines, "\n")); d != "" {
			t.Fatalf("%q line by line: %s", s, d)
		}
	})
}

func FuzzLabel(f *testing.F) {
	addHostile(f)
	f.Fuzz(func(t *testing.T, s string, _ uint64) {
		label := Label(s)
		if r, bad := unsafeRune(label, false); bad {
			t.Fatalf("Label(%q) holds %U", s, r)
		}
		if label != s && meant(t, label) != s {
			t.Fatalf("Label(%q) is %q, which means %q", s, label, meant(t, label))
		}
		for _, cells := range []int{0, 1, 2, 7} {
			left, right := Cut(label, cells, "…"), CutLeft(label, cells, "…")
			if Width(left) > cells || Width(right) > cells {
				t.Fatalf("%q is cut to %d cells: %q takes %d, %q takes %d", s, cells, left, Width(left), right, Width(right))
			}
			if !wholeClusters(label, strings.TrimSuffix(left, "…")) {
				t.Fatalf("%q is cut inside a character: %q", label, left)
			}
		}
	})
}

// meant is what a label says in which something is escaped: there is one
// reading only.
func meant(t *testing.T, label string) string {
	t.Helper()
	var b strings.Builder
	for label != "" {
		before, rest, escaped := strings.Cut(label, `\`)
		b.WriteString(before)
		if !escaped {
			break
		}
		if rest == "" {
			t.Fatalf("%q ends in the middle of an escape", label)
		}
		kind := rest[0]
		label = rest[1:]
		if simple, ok := map[byte]string{'\\': `\`, 'n': "\n", 'r': "\r", 't': "\t", 'e': "\x1b"}[kind]; ok {
			b.WriteString(simple)
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[kind]
		n, err := strconv.ParseUint(label[:min(digits, len(label))], 16, 32)
		if err != nil || digits == 0 {
			t.Fatalf("%q is no escape", rest)
		}
		label = label[digits:]
		if kind == 'x' {
			b.WriteByte(byte(n))
		} else {
			b.WriteRune(rune(n))
		}
	}
	return b.String()
}

// wholeClusters tells whether a text begins with a part that ends between two
// characters as a person counts them.
func wholeClusters(s, part string) bool {
	for rest := s; ; {
		if len(s)-len(rest) >= len(part) {
			return strings.HasPrefix(s, part) && len(s)-len(rest) == len(part)
		}
		cluster, _ := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		rest = rest[len(cluster):]
	}
}

// BenchmarkTabs holds what is slow if each tab measures its whole line.
func BenchmarkTabs(b *testing.B) {
	text := strings.Repeat("a\t", 50_000)
	b.Run("text", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			Text(text)
		}
	})
	b.Run("output", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			NewDiscipline().Write(text)
		}
	})
}

func BenchmarkDiscipline(b *testing.B) {
	for name, chunk := range map[string]string{
		"ASCII":    strings.Repeat("ok  \tpkg/a\t0.2s and so on, until the line is full\r\n", 20),
		"CJK":      strings.Repeat("世界 世界 世界 世界 世界\n", 20),
		"progress": strings.Repeat("\r[=====>     ] 41%\x1b[K", 40),
	} {
		b.Run(name, func(b *testing.B) {
			d := NewDiscipline()
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				d.Write(chunk)
			}
		})
	}
}
