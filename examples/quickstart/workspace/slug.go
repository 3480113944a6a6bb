// Package slug turns titles into parts of URLs.
package slug

import "strings"

// Make returns title in lower case, with every run of other characters than
// letters and digits as one hyphen.
func Make(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}
