package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/fault"
	"drover/runner/approver"
	"drover/tools/sandbox"
)

func TestPermissionsAreGrantedForLaterCalls(t *testing.T) {
	beside := t.TempDir()
	request := func(args string) string {
		return `{"tool_calls":[{"name":"request_permissions","args":` + args + `}]}` + "\n"
	}
	whole := `{"permissions":{"network":{"enabled":true},"file_system":{"write":["` + beside + `"]}},"reason":"to write the report"}`
	write := `{"tool_calls":[{"name":"write_file","args":{"path":"` + filepath.Join(beside, "f") + `","content":"x"}}]}` + "\n"
	base := "version: 1\ndefault: deny\non_ask: approver\nrules:\n  - {id: ws, effect: allow, path: [\"**\"], access: [write]}\n"
	for _, c := range []struct {
		name, policy string
		answer       approver.Answer
		script       string
		exit         fault.Exit
		questions    int
		written      bool
	}{
		{name: "for the turn", answer: approver.Answer{Approved: true}, exit: fault.Success, questions: 1, written: true,
			script: request(whole) + strings.Replace(write, `{`, `{"expect":"\"network\":.\"enabled\":true.*\"scope\":\"turn\"",`, 1) + `{"text":"Done."}`},
		{name: "for the session", answer: approver.Answer{Approved: true, Scope: "session"}, exit: fault.Success, questions: 1, written: true,
			script: request(whole) + strings.Replace(write, `{`, `{"expect":"\"scope\":\"session\"",`, 1) + `{"text":"Done."}`},
		{name: "less than was asked", exit: fault.Blocked, questions: 1,
			answer: approver.Answer{Approved: true, Args: json.RawMessage(`{"permissions":{"network":{"enabled":true}}}`)},
			script: request(whole) + strings.Replace(write, `{`, `{"expect":"\"file_system\":null",`, 1) + `{"text":"Done."}`},
		{name: "refused", exit: fault.Blocked, questions: 1, answer: approver.Answer{Reason: "no need"},
			script: request(whole) + strings.Replace(write, `{`, `{"expect":"was refused: no need",`, 1) + `{"text":"Done."}`},
		{name: "never", policy: base + "approval: never\n", exit: fault.Success, answer: approver.Answer{Approved: true},
			script: request(whole) + `{"expect":"\"network\":null,\"file_system\":null.,\"scope\":\"turn\"","text":"Done."}`},
		{name: "granular without it", policy: base + "approval: {granular: {sandbox_approval: true, rules: true, mcp_elicitations: true}}\n", exit: fault.Success, answer: approver.Answer{Approved: true},
			script: request(whole) + `{"expect":"\"network\":null,\"file_system\":null.,\"scope\":\"turn\"","text":"Done."}`},
		{name: "granular with it", policy: base + "approval: {granular: {sandbox_approval: true, rules: true, mcp_elicitations: true, request_permissions: true}}\n", exit: fault.Success, answer: approver.Answer{Approved: true}, questions: 1, written: true,
			script: request(whole) + strings.Replace(write, `{`, `{"expect":"\"network\":.\"enabled\":true",`, 1) + `{"text":"Done."}`},
		{name: "more than was asked", exit: fault.Blocked, questions: 1,
			answer: approver.Answer{Approved: true, Args: json.RawMessage(`{"permissions":{"network":{"enabled":true},"file_system":{"write":["/"]}}}`)},
			script: request(`{"permissions":{"network":{"enabled":true}}}`) + strings.Replace(write, `{`, `{"expect":"\"file_system\":null",`, 1) + `{"text":"Done."}`},
		{name: "nothing", exit: fault.Success, script: request(`{"permissions":{}}`) + `{"expect":"requires at least one permission","text":"Done."}`},
		{name: "another key", exit: fault.Success, script: request(`{"permissions":{"shell":true}}`) + `{"expect":"unknown field .{1,3}shell","text":"Done."}`},
		{name: "a protected folder", exit: fault.Success, answer: approver.Answer{Approved: true},
			script: request(`{"permissions":{"file_system":{"write":["`+beside+`/.git"]}}}`) + `{"expect":"is protected","text":"Done."}`},
		{name: "what a rule denies", policy: base + "  - {id: no, effect: deny, path: [\"" + beside + "/**\", \"" + beside + "\"]}\n", exit: fault.Success, answer: approver.Answer{Approved: true},
			script: request(whole) + `{"expect":"refused by the policy rule no","text":"Done."}`},
		{name: "protected names below it", exit: fault.Blocked, questions: 1, answer: approver.Answer{Approved: true},
			script: request(whole) + strings.Replace(write, "/f\"", "/.git/f\"", 1) + `{"text":"Done."}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.answer.Scope == "" {
				c.answer.Scope = "once"
			}
			asker := always(c.answer)
			out, lines := play(t, c.script, func(o *Options) {
				text := c.policy
				if text == "" {
					text = base
				}
				asking(t, asker, text)(o)
			})
			_, err := os.Stat(filepath.Join(beside, "f"))
			if out.End.Exit != c.exit || len(asker.asked) != c.questions || (err == nil) != c.written {
				t.Errorf("ended with %+v, %d questions, %v:\n%s", out.End, len(asker.asked), err, lines)
			}
			_ = os.Remove(filepath.Join(beside, "f")) // it may not be there
		})
	}
}

func TestPermissionsWithoutAnybodyAreAnError(t *testing.T) {
	out, lines := play(t, `{"tool_calls":[{"name":"request_permissions","args":{"permissions":{"network":{"enabled":true}}}}]}
{"expect":"nobody can grant permissions","text":"Done."}`, nil)
	if out.End.Exit != fault.Success || strings.Contains(strings.SplitN(lines, "\n", 2)[0], "request_permissions") {
		t.Errorf("ended with %+v:\n%s", out.End, lines)
	}
}

func TestRightsAreJoinedAndCut(t *testing.T) {
	a := sandbox.Rights{Network: true, Write: []string{"/a", "/b/c"}}
	b := sandbox.Rights{Read: []string{"/r"}, Write: []string{"/a/x", "/b"}}
	got := intersect(a, b)
	if got.Network || strings.Join(got.Write, ",") != "/a/x,/b/c" || len(got.Read) != 0 {
		t.Errorf("intersect: %+v", got)
	}
	if u := union(a, b); !u.Network || strings.Join(u.Write, ",") != "/a,/a/x,/b,/b/c" || strings.Join(u.Read, ",") != "/r" {
		t.Errorf("union: %+v", u)
	}
	for _, c := range []struct {
		have, want sandbox.Rights
		covered    bool
	}{
		{a, sandbox.Rights{Network: true, Write: []string{"/a/deep"}}, true},
		{a, sandbox.Rights{Read: []string{"/a/deep"}}, true},
		{a, sandbox.Rights{Write: []string{"/ab"}}, false},
		{a, sandbox.Rights{Off: true}, false},
		{b, sandbox.Rights{Network: true}, false},
		{b, sandbox.Rights{Write: []string{"/r"}}, false},
	} {
		if covers(c.have, c.want) != c.covered {
			t.Errorf("%+v covers %+v: %v", c.have, c.want, !c.covered)
		}
	}
}
