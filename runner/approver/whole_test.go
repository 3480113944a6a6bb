package approver

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"drover/output/event"
)

func TestNothingIsApprovedUnseen(t *testing.T) {
	long := "echo " + strings.Repeat("x", 300) + "; rm -rf /"
	for _, c := range []struct {
		name, display string
		args          map[string]any
		want, not     []string
	}{
		{"a short command needs no more", "run: go test ./...", map[string]any{"cmd": "go test ./..."}, nil, []string{"in full"}},
		{"an end of line ends a comment", "run: echo ok # all right rm -rf x", map[string]any{"cmd": "echo ok # all right\nrm -rf x"},
			[]string{"    cmd | echo ok # all right\n        | rm -rf x\n"}, nil},
		{"blanks are kept", "run: touch a b", map[string]any{"cmd": "touch 'a  b'"}, []string{"cmd | touch 'a  b'\n"}, nil},
		{"the end of a long command", "run: " + long[:190] + "…", map[string]any{"cmd": long, "tty": true}, []string{"; rm -rf /\n", "tty | true"}, nil},
		{"a list", "call", map[string]any{"command": []string{"sh", "-c", "id"}}, []string{"command[2] | id\n"}, nil},
		{"too long a text says so", "run: x", map[string]any{"cmd": strings.Repeat("y\n", maxWhole)}, []string{"THIS IS NOT ALL OF IT"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, err := json.Marshal(c.args)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			a := &terminal{TerminalOptions: TerminalOptions{Out: &out, Clean: func(s string) string { return strings.ReplaceAll(s, "\n", " ") }}}
			a.whole(event.ToolApprovalRequestEvent{Display: c.display, Args: args})
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not shown:\n%s", want, cut(out.String(), 2000))
				}
			}
			for _, not := range c.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("%q is shown:\n%s", not, cut(out.String(), 2000))
				}
			}
			if out.Len() > 4*maxWhole {
				t.Errorf("%d bytes", out.Len())
			}
		})
	}
}
