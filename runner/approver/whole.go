package approver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/output/event"
)

// The line that displays a call is short and has no ends of lines, so that it
// may hide the half of a command that matters. What somebody is to answer for
// is shown as it is.

// maxWhole bounds how many bytes of the arguments are shown.
const maxWhole = 16 << 10

// whole prints the arguments of a call, unless its display holds all of them.
func (t *terminal) whole(b event.ToolApprovalRequestEvent) {
	var args any
	if json.Unmarshal(b.Args, &args) != nil || !b.Truncated && within(b.Display, args) {
		return
	}
	left := maxWhole
	t.print("  in full:\n")
	t.show("", args, &left)
	if left < 0 || b.Truncated {
		t.print("  THIS IS NOT ALL OF IT: it is too long to be shown\n")
	}
}

// within tells whether every text of a value is in the display as it is.
func within(display string, v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(display, v)
	case map[string]any:
		for _, of := range v {
			if !within(display, of) {
				return false
			}
		}
	case []any:
		for _, of := range v {
			if !within(display, of) {
				return false
			}
		}
	}
	return true
}

// show prints a value below its name, a text line by line.
func (t *terminal) show(name string, v any, left *int) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			t.show(strings.TrimPrefix(name+"."+key, "."), v[key], left)
		}
	case []any:
		for i, of := range v {
			t.show(fmt.Sprintf("%s[%d]", name, i), of, left)
		}
	case string:
		for i, line := range strings.Split(strings.ReplaceAll(v, "\r\n", "\n"), "\n") {
			if i > 0 {
				name = strings.Repeat(" ", len(name))
			}
			t.line(name, line, left)
		}
	default:
		text, _ := json.Marshal(v) // it was JSON
		t.line(name, string(text), left)
	}
}

func (t *terminal) line(name, text string, left *int) {
	if *left < 0 {
		return
	}
	if *left -= len(name) + len(text) + 1; *left < 0 {
		text = cut(text, max(0, *left+len(text)))
	}
	t.print("    %s | %s\n", t.Clean(name), t.Clean(text))
}
