package template

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/fault"
)

func TestPlaceholdersAndBraces(t *testing.T) {
	columns := []string{"q", "City ", "first name", "a.b-c_1", "größe", "{odd", "x}y", "x", `"label": "x"`}
	values := []string{"QUESTION", "CITY", "NAME", "ABC", "SIZE", "ODD", "XY", "X", "JSON"}
	for _, c := range []struct{ name, text, want string }{
		{"no placeholder", "text", "text"},
		{"one", "a {q} b", "a QUESTION b"},
		{"alone", "{q}", "QUESTION"},
		{"twice", "{q}{q}", "QUESTIONQUESTION"},
		{"several", "{q} in {City } by {first name}", "QUESTION in CITY by NAME"},
		{"all kinds of name", "{a.b-c_1}{größe}", "ABCSIZE"},
		{"doubled braces", "{{q}} {{}}", "{q} {}"},
		{"doubled around one", "{{{q}}}", "{QUESTION}"},
		{"empty braces", "{} a", "{} a"},
		{"blanks in braces", "{ } {   }", "{ } {   }"},
		{"lone braces", "a } b { c", "a } b { c"},
		{"lone brace at the end", "{q} {", "QUESTION {"},
		{"closing at the end", "{q} }", "QUESTION }"},
		{"JSON", `{"x": 1, "y": [2]}`, `{"x": 1, "y": [2]}`},
		{"JSON over lines", "{\n  \"x\": {q}\n}", "{\n  \"x\": QUESTION\n}"},
		{"column inside JSON", `{"text": "{q}"}`, `{"text": "QUESTION"}`},
		{"code", "if (a) { return b; }", "if (a) { return b; }"},
		{"name with a brace", "{{odd} {x}y}", "{odd} XY"},
		{"the longest name counts", "{x}y} {x} {x}z", "XY X Xz"},
		{"name that looks like JSON", `{"label": "x"} {"label": "y"}`, `JSON {"label": "y"}`},
		{"brace before a placeholder", "{,{q}", "{,QUESTION"},
		{"bytes that are no text", "\xff{q}\x00", "\xffQUESTION\x00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl, err := Parse(c.text, columns)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, tmpl.Render(values)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJSONExampleInThePromptIsKeptAndAMisspeltColumnIsTold(t *testing.T) {
	text := `Answer like {"label": "x"} for {q}. Lone } and {{ and {not_a_column}`
	_, err := Parse(text, []string{"id", "q"})
	f := faultOf(t, err)
	if f.Code != "template_column" || f.Exit != fault.Config || !strings.Contains(f.What, "{not_a_column}") || !strings.Contains(f.Fix, `"id", "q"`) {
		t.Errorf("got %s: %v (%s)", f.Code, f, f.Fix)
	}
	tmpl, err := Parse(strings.TrimSuffix(text, "{not_a_column}"), []string{"id", "q"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tmpl.Render([]string{"1", "why?"}), `Answer like {"label": "x"} for why?. Lone } and { and `; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func faultOf(t *testing.T, err error) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault", err)
	}
	return f
}

func TestValuesAreNeverLookedAtAgain(t *testing.T) {
	tmpl, err := Parse("{a}|{b}|{a}", []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range [][]string{
		{"{b}", "{a}"},
		{"{{b}}", "}}{{"},
		{"{unknown}", "{"},
		{`{"a":"x, y","b":[1,2]}`, ""},
		{"\x00\x01{b}", "${a} %s \\1"},
	} {
		if got, want := tmpl.Render(values), values[0]+"|"+values[1]+"|"+values[0]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestUnknownColumnsComeWithASuggestion(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns []string
		want    string
	}{
		{"{city}", []string{"id", "City "}, "did you mean {City }?"},
		{"{Title}", []string{"title", "titel"}, "did you mean {title}?"},
		{"{ q }", []string{"q"}, "did you mean {q}?"},
		{"{titel}", []string{"id", "title"}, "did you mean {title}?"},
	} {
		_, err := Parse(c.text, c.columns)
		if f := faultOf(t, err); !strings.Contains(f.Why, c.want) {
			t.Errorf("%s: %q is not in %q", c.text, c.want, f.Why)
		}
	}
	_, err := Parse("{wholly different}", []string{"a", "b"})
	if f := faultOf(t, err); strings.Contains(f.Why, "did you mean") {
		t.Errorf("a suggestion far from what was written: %s", f.Why)
	}
}

func TestUnknownColumnOfAWideTableNamesSomeColumns(t *testing.T) {
	var columns []string
	for i := range 500 {
		columns = append(columns, fmt.Sprintf("column %d", i))
	}
	_, err := Parse("{zzz}", columns)
	f := faultOf(t, err)
	if n := strings.Count(f.Fix, `"column `); n != maxListed || !strings.Contains(f.Fix, "…") {
		t.Errorf("%d columns are listed: %s", n, f.Fix)
	}
}

func TestUnknownColumnsOfEveryShapeOfName(t *testing.T) {
	for _, name := range []string{"nope", "a.b", "a-b", "a_b", "two words", "größe", "1", "名前"} {
		_, err := Parse("{"+name+"}", []string{"q"})
		if f := faultOf(t, err); f.Code != "template_column" {
			t.Errorf("{%s}: got %s", name, f.Code)
		}
		tmpl, err := Parse("{{"+name+"}}", []string{"q"})
		if err != nil {
			t.Errorf("the text itself, {{%s}}: %v", name, err)
		} else if got := tmpl.Render([]string{"v"}); got != "{"+name+"}" {
			t.Errorf("the text itself came out as %q", got)
		}
	}
}

func TestBlankInstructionIsRefused(t *testing.T) {
	for _, text := range []string{"", " ", "\n\t \u00a0"} {
		_, err := Parse(text, []string{"q"})
		if f := faultOf(t, err); !strings.Contains(f.Error(), "instruction must be non-empty") || f.Exit != fault.Usage {
			t.Errorf("%q: got %v", text, f)
		}
	}
}

func TestColumnsAreThoseThatAreUsed(t *testing.T) {
	tmpl, err := Parse("{c} {a} {c} {{b}}", []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	got := tmpl.Columns()
	if diff := cmp.Diff([]string{"c", "a"}, got); diff != "" {
		t.Error(diff)
	}
	got[0] = "changed"
	if tmpl.Columns()[0] != "c" {
		t.Error("a caller can change the template")
	}
}

func TestInstructionOfHundredsOfKilobytesIsRendered(t *testing.T) {
	text := strings.Repeat("x", 300<<10)
	tmpl, err := Parse(text+"{q}"+text, []string{"q"})
	if err != nil {
		t.Fatal(err)
	}
	if got := tmpl.Render([]string{text}); got != text+text+text {
		t.Errorf("%d bytes, want %d", len(got), 3*len(text))
	}
}

// FuzzTemplate has all text outside placeholders come out, in its order, and
// values where they belong, whatever they hold.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		`Answer like {"label": "x"} for {q}. Lone } and {{`, "{q}", "{{q}}", "{{{q}}}", "}{", "{ q}", "{}{", "{q{q}}", "{b c}{q}", "}}}", "{\xff}",
	} {
		f.Add(s, "v", "{q}")
	}
	columns := []string{"q", "b c"}
	f.Fuzz(func(t *testing.T, text, q, bc string) {
		tmpl, err := Parse(text, columns)
		if err != nil {
			return
		}
		// Each value between marks that the text does not have shows where it went.
		if strings.ContainsAny(text, "\x01\x02") {
			t.Skip("the marks are in the text")
		}
		shape := tmpl.Render([]string{"\x01", "\x02"})
		escaped := strings.NewReplacer("{", "{{", "}", "}}", "\x01", "{q}", "\x02", "{b c}").Replace(shape)
		if strings.TrimSpace(escaped) == "" {
			return
		}
		again, err := Parse(escaped, columns)
		if err != nil {
			t.Fatalf("%q, with its braces doubled %q, is refused: %v", text, escaped, err)
		}
		want := strings.NewReplacer("\x01", q, "\x02", bc).Replace(shape)
		for _, got := range []string{tmpl.Render([]string{q, bc}), again.Render([]string{q, bc})} {
			if got != want {
				t.Fatalf("%q rendered as %q, want %q", text, got, want)
			}
		}
		// What is not a brace is all there.
		plain := strings.NewReplacer("{q}", "", "{b c}", "", "{", "", "}", "").Replace(text)
		if left := strings.NewReplacer("\x01", "", "\x02", "", "{", "", "}", "").Replace(shape); !strings.Contains(text, "{{") && left != plain {
			t.Fatalf("of %q the text %q is left", text, left)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := Parse("Triage {title} of {author}: "+strings.Repeat("text {{x}} ", 100), []string{"title", "author"})
	if err != nil {
		b.Fatal(err)
	}
	values := []string{"a title", "somebody"}
	b.ReportAllocs()
	for b.Loop() {
		tmpl.Render(values)
	}
}
