package strict

import (
	"strings"

	"drover/output/fault"
)

// shownBytes bounds what an error repeats of a file.
const shownBytes = 60

// Shorten cuts a text for an error message.
func Shorten(s string) string {
	if len(s) > shownBytes {
		return strings.ToValidUTF8(s[:shownBytes], "") + "…"
	}
	return s
}

func didYouMean(got string, known []string) string {
	near := fault.Nearest(got, known)
	if near == "" {
		return ""
	}
	return ", did you mean \"" + near + "\"?"
}
