package tools

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMiddleCut(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit Limit
		in    string
		want  string
	}{
		{"fits", Limit{Bytes: 5}, "hello", "hello"},
		{"empty", Limit{Bytes: 5}, "", ""},
		{"bytes", Limit{Bytes: 4}, "abcdefghij", "ab…6 chars truncated…ij"},
		{"odd budget gives the tail more", Limit{Bytes: 3}, "abcdefghij", "a…7 chars truncated…ij"},
		{"tokens", Limit{Tokens: 1}, "abcdefghij", "ab…2 tokens truncated…ij"},
		{"no character is cut", Limit{Bytes: 5}, "äöüßé", "ä…3 chars truncated…é"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.limit.Cut(c.in)
			if got != c.want || !utf8.ValidString(got) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestFormattedCutCountsTheLinesOfTheWhole(t *testing.T) {
	in := strings.Repeat("line\n", 10)
	got := Limit{Bytes: 10}.Formatted(in)
	if !strings.HasPrefix(got, "Total output lines: 10\n\nline\n…") {
		t.Errorf("got %q", got)
	}
	if got := (Limit{Bytes: 100}).Formatted(in); got != in {
		t.Errorf("text within the budget changed: %q", got)
	}
}

func TestLimits(t *testing.T) {
	if got := (Limit{Tokens: 100}).AtMost(10); got.Tokens != 10 {
		t.Errorf("lowered to %+v", got)
	}
	if got := (Limit{Tokens: 100}).AtMost(1000); got.Tokens != 100 {
		t.Errorf("raised to %+v", got)
	}
	if got := (Limit{}).Recorded(); got.budget() != DefaultLimit.budget()*12/10 {
		t.Errorf("recorded %+v", got)
	}
	if Tokens("abcde") != 2 {
		t.Error("five bytes are not two tokens")
	}
}
