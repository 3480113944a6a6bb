package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width is how many cells a clean text takes.
func Width(s string) int { return ansi.StringWidth(s) }

// Cut shortens a clean text to a number of cells, on whole characters, and
// ends it with mark if anything was cut.
func Cut(s string, cells int, mark string) string {
	if Width(s) <= cells {
		return s
	}
	if cells < Width(mark) {
		return ""
	}
	return ansi.Truncate(s, cells, mark)
}

// Wrap breaks a clean text of one line into lines of at most that many cells,
// at blanks where there are any.
func Wrap(s string, cells int) []string {
	return strings.Split(ansi.Wrap(s, max(1, cells), ""), "\n")
}

// Pad fills a clean text with blanks up to a number of cells.
func Pad(s string, cells int) string {
	return s + strings.Repeat(" ", max(0, cells-Width(s)))
}
