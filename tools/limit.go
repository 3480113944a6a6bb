package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// bytesPerToken is the estimate used wherever a provider does not count.
const bytesPerToken = 4

// Limit bounds the text that one call gives to the model: a number of tokens,
// or of bytes if Tokens is 0. The zero value is DefaultLimit.
type Limit struct {
	Tokens int
	Bytes  int
}

// DefaultLimit is the limit where nothing else is configured.
var DefaultLimit = Limit{Tokens: 10_000}

// Tokens estimates the tokens of a text.
func Tokens(s string) int { return (len(s) + bytesPerToken - 1) / bytesPerToken }

// budget is the limit in bytes.
func (l Limit) budget() int {
	switch {
	case l.Tokens > 0:
		return l.Tokens * bytesPerToken
	case l.Bytes > 0:
		return l.Bytes
	}
	return DefaultLimit.budget()
}

// AtMost returns the stricter of l and a number of tokens; 0 tokens is no
// bound.
func (l Limit) AtMost(tokens int) Limit {
	if tokens > 0 && tokens*bytesPerToken < l.budget() {
		return Limit{Tokens: tokens}
	}
	return l
}

// Recorded is the limit of the second cut, which every output meets when it
// enters the history: a fifth more, so that a tool cannot smuggle more past it
// while its own header survives.
func (l Limit) Recorded() Limit {
	if l.Tokens > 0 {
		return Limit{Tokens: (l.Tokens*12 + 9) / 10}
	}
	return Limit{Bytes: (l.budget()*12 + 9) / 10}
}

// Fits tells whether a text needs no cut.
func (l Limit) Fits(s string) bool { return len(s) <= l.budget() }

// Cut takes out the middle of a text that is too long, on character
// boundaries, and says there how much is missing. The marker is not counted.
func (l Limit) Cut(s string) string {
	budget := l.budget()
	if len(s) <= budget {
		return s
	}
	left := budget / 2
	right := len(s) - (budget - left)
	for left > 0 && !utf8.RuneStart(s[left]) {
		left--
	}
	for right < len(s) && !utf8.RuneStart(s[right]) {
		right++
	}
	marker := fmt.Sprintf("…%d tokens truncated…", (len(s)-budget+bytesPerToken-1)/bytesPerToken)
	if l.Tokens == 0 && l.Bytes > 0 {
		marker = fmt.Sprintf("…%d chars truncated…", utf8.RuneCountInString(s[left:right]))
	}
	return s[:left] + marker + s[right:]
}

// Formatted cuts like Cut and puts the number of lines of the whole in front.
func (l Limit) Formatted(s string) string {
	if l.Fits(s) {
		return s
	}
	return fmt.Sprintf("Total output lines: %d\n\n", lineCount(s)) + l.Cut(s)
}

func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
