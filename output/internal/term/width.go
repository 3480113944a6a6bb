package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width is how many cells a clean text of one line takes: East Asian wide
// characters and emoji two, what combines none.
func Width(s string) int {
	if isPlain(s) && strings.IndexByte(s, '\n') < 0 {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// Cut shortens a clean text to a number of cells, between graphemes, and ends
// it with mark if anything was cut. Where not even the mark fits, nothing is
// left.
func Cut(s string, cells int, mark string) string {
	if len(s) <= cells || Width(s) <= cells { // no character is wider than its bytes
		return s
	}
	room := cells - Width(mark)
	if room < 0 {
		return ""
	}
	end, used := 0, 0
	for rest := s; rest != ""; {
		cluster, width := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		if used+width > room {
			break
		}
		used += width
		end += len(cluster)
		rest = rest[len(cluster):]
	}
	return s[:end] + mark
}

// CutLeft shortens a clean text to a number of cells at its beginning, which
// becomes mark.
func CutLeft(s string, cells int, mark string) string {
	excess := Width(s) - cells
	if excess <= 0 {
		return s
	}
	if cells < Width(mark) {
		return ""
	}
	excess += Width(mark)
	for excess > 0 && s != "" {
		cluster, width := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		excess -= width
		s = s[len(cluster):]
	}
	return mark + s
}

// Wrap breaks a clean text of one line into lines of at most that many cells,
// at blanks where there are any.
func Wrap(s string, cells int) []string {
	return strings.Split(ansi.Wrap(s, max(1, cells), ""), "\n")
}

// Chop breaks a clean text of one line into lines of at most that many cells,
// wherever they are full. Nothing is lost, blanks neither.
func Chop(s string, cells int) []string {
	return strings.Split(ansi.Hardwrap(s, max(1, cells), true), "\n")
}

// Pad fills a clean text with blanks up to a number of cells.
func Pad(s string, cells int) string {
	return s + strings.Repeat(" ", max(0, cells-Width(s)))
}
