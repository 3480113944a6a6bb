package model

import (
	"strings"
	"testing"
)

func TestArgumentsAreDeliveredOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string
		whole  string
		want   string
	}{
		{"pieces", []string{`{"a"`, `:1}`}, "", `{"a":1}`},
		{"whole only", nil, `{"a":1}`, `{"a":1}`},
		{"pieces and whole", []string{`{"a"`, `:1}`}, `{"a":1}`, `{"a":1}`},
		{"pieces that lack the end", []string{`{"a"`}, `{"a":1}`, `{"a":1}`},
		{"stand-in before the real ones", []string{"{}", `{"cmd":`, `"ls"}`}, "", `{"cmd":"ls"}`},
		{"stand-in in pieces", []string{"{", "}", "\n", `{"cmd":"ls"}`}, "", `{"cmd":"ls"}`},
		{"stand-in before the whole", []string{"{}"}, `{"cmd":"ls"}`, `{"cmd":"ls"}`},
		{"empty object", []string{"{}"}, "{}", "{}"},
		{"empty object in pieces", []string{"{", "}"}, "", "{}"},
		{"nothing", []string{""}, "", ""},
		{"two objects", []string{`{"a":1}`, `{"a":2}`}, "", `{"a":1}{"a":2}`},
		{"text behind an empty object", []string{"{}", "x"}, "", "{}x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			e := emitter{yield: func(d Delta, err error) bool {
				if d.Kind == CallArgs {
					got = append(got, d.Text)
				}
				return true
			}}
			// Named before its arguments, and only after them.
			for _, late := range []bool{false, true} {
				got = nil
				call := e.newCall()
				if !late {
					e.start(call, "", "t", false, false)
				}
				for _, p := range c.pieces {
					e.emitArgs(call, p)
				}
				e.emitWhole(call, c.whole)
				if late {
					e.start(call, "", "t", false, false)
				}
				e.close(call)
				e.emitArgs(call, "late")
				if joined := strings.Join(got, ""); joined != c.want {
					t.Errorf("late %v: got %q, want %q", late, joined, c.want)
				}
			}
		})
	}
}

func TestDeliveredArgumentsStandAgainstAnotherSpelling(t *testing.T) {
	var got string
	e := emitter{yield: func(d Delta, err error) bool { got += d.Text; return true }}
	call := e.newCall()
	e.start(call, "", "t", false, false)
	e.emitArgs(call, `{"a":1}`)
	e.emitWhole(call, `{"a": 1}`)
	e.close(call)
	if got != `{"a":1}` {
		t.Errorf("got %q", got)
	}
}

func TestNothingFollowsTheEnd(t *testing.T) {
	n := 0
	e := emitter{yield: func(Delta, error) bool { n++; return true }}
	if err := e.finish(Stop, nil); err != nil || n != 2 {
		t.Fatalf("%d deltas, %v", n, err)
	}
	e.text("late")
	e.open()
	if n != 2 {
		t.Errorf("%d deltas", n)
	}
	e = emitter{yield: func(Delta, error) bool { n++; return false }}
	e.text("a")
	e.text("b")
	if n != 3 || !e.left() {
		t.Errorf("%d deltas after the caller left", n)
	}
}

func TestExcerptIsShortAndWhole(t *testing.T) {
	if got := excerpt([]byte(strings.Repeat("ü", 300))); got != strings.Repeat("ü", 100)+"…" {
		t.Errorf("got %q", got)
	}
	if got := excerpt([]byte("a\xffb")); got != "ab" {
		t.Errorf("got %q", got)
	}
}
