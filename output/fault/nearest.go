package fault

import "strings"

// maxName is the longest name for which a suggestion is looked for, in bytes.
const maxName = 64

// Nearest returns the known name that got was probably meant to be, or "". Case
// and the difference between - and _ count nothing.
func Nearest(got string, known []string) string {
	if len(got) > maxName {
		return ""
	}
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	best, at := "", 2*(1+max(1, len(got)/3))
	for _, k := range known {
		// Of two names that are equally near the one of the same length wins:
		// swapped letters are commoner than missing ones.
		d := 2 * distance(fold(got), fold(k))
		if len(got) != len(k) {
			d++
		}
		if d < at {
			best, at = k, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete, replace or swap with their
// neighbour that turn a into b.
func distance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
