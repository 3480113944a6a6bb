package frame

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover/output/internal/screen"
)

// check compares the terminal with what was painted: history above, region
// below, nothing else.
func check(t *testing.T, s *screen.Screen, history, rows []string) {
	t.Helper()
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(history, s.Above(), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("history: %s", d)
	}
	var want []string
	for _, r := range rows {
		want = append(want, strings.TrimRight(" "+r, " "))
	}
	for len(want) > 0 && want[len(want)-1] == "" {
		want = want[:len(want)-1]
	}
	if d := cmp.Diff(want, s.Region(), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("region: %s", d)
	}
}

// TestAnyPaintAfterAnyOther: rows that grow, shrink, change or stay, with lines
// going into history between, on screens where they scroll and where not.
func TestAnyPaintAfterAnyOther(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		height := 4 + rnd.IntN(30)
		s := screen.New(30, height)
		var p painter
		history := []string(nil)
		for range rnd.IntN(5) {
			history = append(history, "older")
		}
		_, _ = s.Write([]byte(strings.Repeat("older\r\n", len(history))))
		for n := range 40 {
			var commits, rows []string
			for i := range rnd.IntN(4) * rnd.IntN(2) {
				commits = append(commits, fmt.Sprintf("line %d.%d%s", n, i, strings.Repeat("x", rnd.IntN(60))))
			}
			for i := range rnd.IntN(1 + max(1, height/3)) {
				rows = append(rows, fmt.Sprintf("row %d %s", i, strings.Repeat("y", rnd.IntN(20))))
			}
			b := p.paint(commits, rows)
			if _, err := s.Write(b); err != nil {
				t.Fatal(err)
			}
			history = append(history, commits...)
			check(t, s, history, rows)
			if again := p.paint(nil, rows); again != nil {
				t.Fatalf("the same rows again write %q", again)
			}
		}
	}
}

// TestTwoTerminalsAgree plays paints to an emulator that knows every sequence.
func TestTwoTerminalsAgree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 10 {
		s, e := screen.New(40, 12), vt.NewEmulator(40, 12)
		var p painter
		for n := range 30 {
			var commits, rows []string
			for range rnd.IntN(3) {
				commits = append(commits, fmt.Sprintf("commit %d %s", n, strings.Repeat("z", rnd.IntN(70))))
			}
			for i := range rnd.IntN(5) {
				rows = append(rows, fmt.Sprintf("row %d of %d", i, n))
			}
			b := p.paint(commits, rows)
			if _, err := s.Write(b); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Write(b); err != nil {
				t.Fatal(err)
			}
			var other []string
			for l := range strings.SplitSeq(e.String(), "\n") {
				other = append(other, strings.TrimRight(l, " "))
			}
			if d := cmp.Diff(s.Text(), other); d != "" {
				t.Fatalf("after paint %d: %s", n, d)
			}
		}
	}
}

// TestWidthsThatATerminalSeesOtherwiseMoveNoRow: families, flags and keycaps are
// one, two or four cells wide, as the terminal likes.
func TestWidthsThatATerminalSeesOtherwiseMoveNoRow(t *testing.T) {
	wide := strings.Repeat("👩‍👩‍👧🇩🇪1️⃣☎️世e\u0301", 6)
	for _, emoji := range []int{0, 1, 2, 4} {
		s := screen.New(40, 12)
		s.Emoji = emoji
		var p painter
		for n := range 20 {
			rows := []string{"first", wide, fmt.Sprintf("third %d", n)}
			if _, err := s.Write(p.paint(nil, rows)); err != nil {
				t.Fatal(err)
			}
			if got := s.Region(); len(got) != 3 || got[0] != " first" || got[2] != fmt.Sprintf(" third %d", n) {
				t.Fatalf("emoji of %d cells: %q", emoji, got)
			}
		}
		if got := s.Above(); len(got) != 0 {
			t.Fatalf("emoji of %d cells leave %q behind", emoji, got)
		}
	}
}

func TestTheLastRowOfASmallerRegionStays(t *testing.T) {
	s := screen.New(20, 10)
	var p painter
	for _, rows := range [][]string{{"a", "b", "c"}, {"a", "b"}, {"a"}, nil, {"x"}} {
		if _, err := s.Write(p.paint(nil, rows)); err != nil {
			t.Fatal(err)
		}
		check(t, s, nil, rows)
	}
	if _, err := s.Write(p.erase()); err != nil {
		t.Fatal(err)
	}
	check(t, s, nil, nil)
	if b := p.erase(); b != nil {
		t.Errorf("nothing is erased by %q", b)
	}
}

// BenchmarkPaint is a paint of a whole region of the widest rows; its bytes are
// reported.
func BenchmarkPaint(b *testing.B) {
	rows := make([]string, 12)
	for i := range rows {
		rows[i] = strings.Repeat("x", 100)
	}
	var p painter
	n := 0
	for b.Loop() {
		p.forget()
		n = len(p.paint(nil, rows))
	}
	b.ReportMetric(float64(n), "bytes/paint")
}
