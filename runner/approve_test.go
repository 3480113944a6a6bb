package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/approver"
	"drover/tools"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// fakeAsker answers as a function says, and keeps what it was asked.
type fakeAsker struct {
	answer func(ctx context.Context, n int, e event.Event) (approver.Answer, error)

	mu    sync.Mutex
	asked []event.Event
}

func (f *fakeAsker) By() event.Decider { return "approver" }
func (f *fakeAsker) Close() error      { return nil }

func (f *fakeAsker) Ask(ctx context.Context, e event.Event) (approver.Answer, error) {
	f.mu.Lock()
	f.asked = append(f.asked, e)
	n := len(f.asked)
	f.mu.Unlock()
	return f.answer(ctx, n, e)
}

func always(a approver.Answer) *fakeAsker {
	if a.Scope == "" {
		a.Scope = "once"
	}
	return &fakeAsker{answer: func(context.Context, int, event.Event) (approver.Answer, error) { return a, nil }}
}

// loaded is a policy from text.
func loaded(t *testing.T, text string, dir string) *policy.Policy {
	t.Helper()
	p, err := policy.Load(policy.Sources{Inline: []byte(text), InlineName: "test", Roots: policy.Roots{Workspace: dir, Writable: []string{dir}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const asks = "version: 1\ndefault: ask\non_ask: approver\n"

// asking sets a run up in which an asker answers.
func asking(t *testing.T, asker approver.Approver, text string) func(*Options) {
	return func(o *Options) {
		o.Policy = loaded(t, text, o.Cwd)
		o.Approvals.Asker = asker
	}
}

const touchTwice = `{"tool_calls":[{"name":"exec_command","args":{"cmd":"touch a"}}]}
{"tool_calls":[{"name":"exec_command","args":{"cmd":"touch a"}}]}
{"text":"Done."}`

func TestAnAnswerHoldsForItsScope(t *testing.T) {
	for _, c := range []struct {
		name     string
		scope    event.Scope
		rule     string
		policy   string
		generate bool
		questions,
		written int
		told string
	}{
		{name: "once", scope: "once", questions: 2},
		{name: "session", scope: "session", questions: 1},
		{name: "always without leave", scope: "always", questions: 1, told: "answers may not write policy"},
		{name: "always", scope: "always", generate: true, questions: 1, written: 1},
		{name: "no longer than the rule", scope: "always", generate: true, questions: 2, told: "max_scope says so",
			policy: "version: 1\ndefault: allow\non_ask: approver\nrules:\n  - {id: t, effect: ask, argv: [touch], max_scope: once}\n"},
		{name: "a rule of its own", scope: "session", rule: `{"argv":["touch"]}`, questions: 1},
		{name: "a rule that cannot be read", scope: "session", rule: `{"argv":["touch"],"efect":"allow"}`, questions: 2, told: "cannot be used"},
		{name: "a rule that denies", scope: "session", rule: `{"argv":["touch"],"effect":"deny"}`, questions: 2, told: "can only allow"},
		{name: "a rule that leaves the sandbox", scope: "session", rule: `{"argv":["touch"],"sandbox":"off"}`, questions: 2, told: "cannot be used"},
		{name: "the id of no suggestion", scope: "session", rule: `"other"`, questions: 2, told: "none of those that were suggested"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := approver.Answer{Approved: true, Scope: c.scope}
			if c.rule != "" {
				a.Rule = json.RawMessage(c.rule)
			}
			asker, written := always(a), 0
			var kept []any
			out, lines := play(t, touchTwice, func(o *Options) {
				text := asks
				if c.policy != "" {
					text = c.policy
				}
				asking(t, asker, text)(o)
				o.Keep = func(record any) error { kept = append(kept, record); return nil }
				if c.generate {
					o.Approvals.Generate = func(policy.Proposal, string) error { written++; return nil }
				}
			})
			if out.End.Exit != fault.Success || len(asker.asked) != c.questions || written != c.written || !strings.Contains(lines, c.told) {
				t.Errorf("ended with %+v, %d questions, %d rules written:\n%s", out.End, len(asker.asked), written, lines)
			}
			grants := 0
			for _, r := range kept {
				if _, ok := r.(grantRecord); ok {
					grants++
				}
			}
			if (grants == 1) != (c.questions == 1) {
				t.Errorf("%d grants are kept with the session", grants)
			}
		})
	}
}

func TestARuleThatCannotBeWrittenHoldsForTheSession(t *testing.T) {
	asker := always(approver.Answer{Approved: true, Scope: "always"})
	_, lines := play(t, touchTwice, func(o *Options) {
		asking(t, asker, asks)(o)
		o.Approvals.Generate = func(policy.Proposal, string) error { return errors.New("the disk is full") }
	})
	if len(asker.asked) != 1 || !strings.Contains(lines, "the disk is full") || !strings.Contains(lines, `"approved":true,"scope":"session"`) {
		t.Errorf("%d questions:\n%s", len(asker.asked), lines)
	}
}

func TestAGrantNeverTurnsADenial(t *testing.T) {
	asker := always(approver.Answer{Approved: true, Scope: "session", Rule: json.RawMessage(`{"argv":["touch"]}`)})
	out, _ := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"touch a"}}]}
{"tool_calls":[{"name":"exec_command","args":{"cmd":"touch secret"}}]}
{"expect":"refused by the policy rule never","text":"Done."}`, asking(t, asker, asks+"rules:\n  - {id: never, effect: deny, argv: [touch, secret]}\n"))
	if out.End.Exit != fault.Blocked || len(asker.asked) != 1 {
		t.Errorf("ended with %+v, %d questions", out.End, len(asker.asked))
	}
}

func TestWhoeverIsAskedMayBreak(t *testing.T) {
	for name, answer := range map[string]func(context.Context, int, event.Event) (approver.Answer, error){
		"an error": func(context.Context, int, event.Event) (approver.Answer, error) {
			return approver.Answer{}, errors.New("boom")
		},
		"a yes and an err": func(context.Context, int, event.Event) (approver.Answer, error) {
			return approver.Answer{Approved: true}, errors.New("boom")
		},
		"a panic": func(context.Context, int, event.Event) (approver.Answer, error) { panic("boom") },
		// It does not even look at its context.
		"silence": func(context.Context, int, event.Event) (approver.Answer, error) { select {} },
	} {
		t.Run(name, func(t *testing.T) {
			out, lines := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"touch a"}}]}
{"expect":"^denied: ","text":"Done."}`, func(o *Options) {
				asking(t, &fakeAsker{answer: answer}, asks)(o)
				o.Approvals.Timeout = 200 * time.Millisecond
			})
			if out.End.Exit != fault.Blocked || len(out.Denials) != 1 || !out.Denials[0].Counts || out.Denials[0].CorrelationID == "" {
				t.Errorf("ended with %+v, %+v", out.End, out.Denials)
			}
			if strings.Contains(strings.ToLower(lines), "cancel") || strings.Contains(lines, "by user") {
				t.Errorf("somebody is said to have cancelled something:\n%s", lines)
			}
		})
	}
}

func TestOtherCallsGoOnWhileOneIsAskedAbout(t *testing.T) {
	m := &meeting{met: make(chan struct{})}
	asked := make(chan struct{})
	asker := &fakeAsker{answer: func(ctx context.Context, _ int, _ event.Event) (approver.Answer, error) {
		close(asked)
		select {
		case <-m.met: // the other calls have met meanwhile
			return approver.Answer{Approved: true, Scope: "once"}, nil
		case <-ctx.Done():
			return approver.Answer{}, context.Cause(ctx)
		}
	}}
	out, _ := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"true"}},{"name":"meet","args":{"name":"a"}},{"name":"meet","args":{"name":"b"}}]}
{"expect":"(?s)code 0.*a met\nb met","text":"All met."}`, func(o *Options) {
		asking(t, asker, "version: 1\ndefault: allow\non_ask: approver\nrules:\n  - {id: t, effect: ask, argv: [\"true\"]}\n")(o)
		o.Tools = append(o.Tools, m.tools()...)
	})
	<-asked
	if out.End.Exit != fault.Success {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestTheIdleLimitWaitsForAnAnswer(t *testing.T) {
	asker := &fakeAsker{answer: func(context.Context, int, event.Event) (approver.Answer, error) {
		time.Sleep(600 * time.Millisecond) // somebody thinks about it
		return approver.Answer{Approved: true, Scope: "once"}, nil
	}}
	out, _ := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"true"}}]}`+"\n"+`{"text":"Done."}`, func(o *Options) {
		asking(t, asker, asks)(o)
		o.Limits.Idle = 200 * time.Millisecond
	})
	if out.End.Exit != fault.Success {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestTheEndOfTheRunEndsTheQuestion(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	asker := &fakeAsker{answer: func(ctx context.Context, _ int, _ event.Event) (approver.Answer, error) {
		cancel(&Stop{Exit: fault.Terminated, Reason: "sigterm"})
		<-ctx.Done()
		return approver.Answer{}, ctx.Err()
	}}
	out, lines := playUnder(ctx, t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"touch a"}}]}`+"\n", asking(t, asker, asks))
	if out.End.Exit != fault.Terminated || len(out.Denials) != 0 || !strings.Contains(lines, `"last_status":"awaiting_approval"`) ||
		!strings.Contains(lines, `"approved":false,"scope":"once","decided_by":"default"`) {
		t.Errorf("ended with %+v:\n%s", out.End, lines)
	}
}

func TestARewriteIsJudgedAgain(t *testing.T) {
	for _, c := range []struct {
		name, args, expect string
		exit               fault.Exit
	}{
		{"allowed", `{"cmd":"echo other"}`, "(?s)other.*changed its arguments; what was run is run: echo other", fault.Success},
		{"refused", `{"cmd":"rm x"}`, "refused by the policy rule never", fault.Blocked},
		{"no arguments", `{}`, "cannot be used", fault.Blocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			asker := always(approver.Answer{Approved: true, Args: json.RawMessage(c.args)})
			out, lines := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"touch a"}}]}
{"expect":"`+c.expect+`","text":"Done."}`, asking(t, asker, asks+"rules:\n  - {id: never, effect: deny, argv: [rm]}\n"))
			if out.End.Exit != c.exit || !strings.Contains(lines, `"args_rewritten":true,"args":`+c.args) || len(asker.asked) != 1 {
				t.Errorf("ended with %+v:\n%s", out.End, lines)
			}
		})
	}
}

// TestARewriteOfATextIsJudgedAgain: what a freeform tool gets is one text.
func TestARewriteOfATextIsJudgedAgain(t *testing.T) {
	patch := func(path string) string { return "*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch" }
	for _, c := range []struct {
		name, args, made string
		exit             fault.Exit
	}{
		{"allowed", fmt.Sprintf(`{"input":%q}`, patch("other")), "other", fault.Success},
		{"refused", fmt.Sprintf(`{"input":%q}`, patch("secret/x")), "", fault.Blocked},
		{"outside", fmt.Sprintf(`{"input":%q}`, patch("../x")), "", fault.Blocked},
		{"no patch", `{"input":"rm -r x"}`, "", fault.Blocked},
		{"no text", `{"cmd":"touch other"}`, "", fault.Blocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			asker := always(approver.Answer{Approved: true, Args: json.RawMessage(c.args)})
			var dir string
			out, lines := play(t, fmt.Sprintf(`{"tool_calls":[{"name":"apply_patch","input":%q}]}`, patch("first"))+"\n"+`{"text":"Done."}`, func(o *Options) {
				asking(t, asker, asks+"rules:\n  - {id: never, effect: deny, path: [\"secret/**\"]}\n")(o)
				dir = o.Cwd
			})
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var made []string
			for _, e := range entries {
				if e.Name() != "m.jsonl" {
					made = append(made, e.Name())
				}
			}
			if out.End.Exit != c.exit || strings.Join(made, " ") != c.made || len(asker.asked) != 1 {
				t.Errorf("ended with %+v, made %q:\n%s", out.End, made, lines)
			}
		})
	}
}

// TestARewriteApprovesNothingElse: the call as it was is asked about again, and
// so is what was suggested for it.
func TestARewriteApprovesNothingElse(t *testing.T) {
	for rule, questions := range map[string]int{"": 2, `{"argv":["echo"]}`: 2, `{"argv":["touch"]}`: 1} {
		a := approver.Answer{Approved: true, Scope: "session", Args: json.RawMessage(`{"cmd":"echo other"}`)}
		if rule != "" {
			a.Rule = json.RawMessage(rule)
		}
		asker := always(a)
		_, lines := play(t, touchTwice, asking(t, asker, asks))
		if len(asker.asked) != questions || (rule == "") != strings.Contains(lines, "it changes the arguments and names no rule") {
			t.Errorf("the rule %s: %d questions:\n%s", rule, len(asker.asked), lines)
		}
	}
}

func TestTheRequestIsTheLineOfTheStream(t *testing.T) {
	asker := always(approver.Answer{Approved: true})
	_, lines := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"true"}}]}`+"\n"+`{"text":"Done."}`, asking(t, asker, asks))
	line, err := event.AppendJSON(nil, asker.asked[0])
	if err != nil || !strings.Contains(lines, string(line)+"\n") {
		t.Errorf("%v: %s is not in\n%s", err, line, lines)
	}
	body, _ := asker.asked[0].Body.(event.ToolApprovalRequestEvent)
	if _, err := time.Parse(time.RFC3339, body.Deadline); err != nil || body.MaxScope != "session" || len(body.SuggestedRules) == 0 {
		t.Errorf("%v in %+v", err, body)
	}
}

func TestNobodyIsAskedWherePolicySaysOtherwise(t *testing.T) {
	for on, want := range map[string]fault.Exit{"deny": fault.Blocked, "fail": fault.NeedsInput, "defer": fault.NeedsInput} {
		asker := always(approver.Answer{Approved: true})
		out, _ := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"touch a"}}]}`+"\n"+`{"text":"Done."}`, func(o *Options) {
			asking(t, asker, "version: 1\ndefault: ask\non_ask: "+on+"\n")(o)
			o.Approvals.Resume = "ses_1"
		})
		if out.End.Exit != want || len(asker.asked) != 0 || (out.Resume == "ses_1") != (on == "defer") {
			t.Errorf("%s: ended with %+v, resume %q, %d questions", on, out.End, out.Resume, len(asker.asked))
		}
	}
}

// fenced is a command tool whose first try the sandbox stands in the way of.
func fenced(runs *[]sandbox.Rights) tools.Tool {
	type in struct {
		Cmd string `json:"cmd"`
	}
	return tools.New(tools.Def[in]{Name: "fenced", Parallel: true,
		Actions: func(a in, env tools.Env) ([]policy.Action, error) {
			return []policy.Action{policy.Exec(env.Cwd, a.Cmd)}, nil
		},
		Run: func(_ context.Context, _ in, env tools.Env) (tools.Result, error) {
			*runs = append(*runs, env.Rights)
			if env.Rights.Off {
				return tools.Result{Text: "it worked outside"}, nil
			}
			return tools.Result{Text: "it failed inside", Refusals: []sandbox.Refusal{{What: "write", Target: "/etc/x", Reason: "read-only"}}}, nil
		}})
}

func TestACommandThatTheSandboxStoppedIsTriedOutsideAfterAYes(t *testing.T) {
	for _, c := range []struct {
		name, approval string
		approved       bool
		scope          event.Scope
		asker          bool
		questions      int
		runs           int
		expect         string
	}{
		{"yes", "on-failure", true, "once", true, 2, 4, "(?s)worked outside.*Somebody allowed"},
		{"yes for the session", "on-failure", true, "session", true, 1, 4, "(?s)worked outside"},
		{"no", "on-failure", false, "once", true, 2, 2, "failed inside"},
		{"nobody", "on-failure", true, "once", false, 0, 2, "failed inside"},
		{"on-request", "on-request", true, "once", true, 0, 2, "failed inside"},
		{"never", "never", true, "once", true, 0, 2, "failed inside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var runs []sandbox.Rights
			asker := always(approver.Answer{Approved: c.approved, Scope: c.scope})
			out, lines := play(t, `{"tool_calls":[{"name":"fenced","args":{"cmd":"ls"}}]}
{"expect":"`+c.expect+`","tool_calls":[{"name":"fenced","args":{"cmd":"ls"}}]}
{"expect":"`+c.expect+`","text":"Done."}`, func(o *Options) {
				o.Policy = loaded(t, "version: 1\non_ask: approver\napproval: "+c.approval+"\n", o.Cwd)
				o.Tools = []tools.Tool{fenced(&runs)}
				o.Started.Sandbox = &event.Sandbox{Mode: "workspace-write"}
				if c.asker {
					o.Approvals.Asker = asker
				}
			})
			// A refused retry is no refused call: it ran.
			if out.End.Exit != fault.Success || len(asker.asked) != c.questions || len(runs) != c.runs || len(out.Denials) != 0 {
				t.Errorf("ended with %+v, %d questions, ran with %+v:\n%s", out.End, len(asker.asked), runs, lines)
			}
			if c.questions > 0 && !strings.Contains(lines, retryReason) {
				t.Errorf("nobody was asked %q", retryReason)
			}
		})
	}
}

func TestOneTryOutsideAtATime(t *testing.T) {
	var mu sync.Mutex
	inside, overlap := 0, false
	type in struct {
		Off bool `json:"off"`
	}
	tool := tools.New(tools.Def[in]{Name: "leave", Parallel: true, Run: func(_ context.Context, a in, env tools.Env) (tools.Result, error) {
		mu.Lock()
		inside++
		overlap = overlap || env.Rights.Off && inside > 1
		mu.Unlock()
		time.Sleep(20 * time.Millisecond) // long enough for others to come in
		mu.Lock()
		overlap = overlap || env.Rights.Off && inside > 1
		inside--
		mu.Unlock()
		return tools.Result{Text: "ok"}, nil
	}})
	wanting := wants{tool}
	call := `{"name":"leave","args":{"off":true}}`
	out, _ := play(t, `{"tool_calls":[`+strings.Repeat(call+",", 3)+strings.Replace(call, "true", "false", 1)+`]}`+"\n"+`{"text":"Done."}`, func(o *Options) {
		o.Policy = loaded(t, "version: 1\ndefault: allow\non_ask: approver\napproval: on-request\n", o.Cwd)
		o.Approvals.Asker = always(approver.Answer{Approved: true})
		o.Tools = []tools.Tool{wanting}
		o.Started.Sandbox = &event.Sandbox{Mode: "workspace-write"}
	})
	if out.End.Exit != fault.Success || overlap {
		t.Errorf("ended with %+v, overlap %v", out.End, overlap)
	}
}

// wants is a tool whose calls ask to leave the sandbox if their arguments say
// off.
type wants struct{ tools.Tool }

func (w wants) Prepare(env tools.Env, in tools.Input) (*tools.Call, error) {
	call, err := w.Tool.Prepare(env, in)
	if err == nil && strings.Contains(in.Text, "true") {
		call.Wants = &tools.Wants{Rights: sandbox.Rights{Off: true}, Justification: "it needs the display"}
	}
	return call, err
}

func TestAWishBeyondTheSandboxIsAsked(t *testing.T) {
	var got []sandbox.Rights
	type in struct {
		Off bool `json:"off"`
	}
	tool := wants{tools.New(tools.Def[in]{Name: "leave", Run: func(_ context.Context, _ in, env tools.Env) (tools.Result, error) {
		got = append(got, env.Rights)
		return tools.Result{Text: "ran"}, nil
	}})}
	script := `{"tool_calls":[{"name":"leave","args":{"off":true}}]}` + "\n" + `{"tool_calls":[{"name":"leave","args":{"off":true}}]}` + "\n" + `{"text":"Done."}`
	for _, c := range []struct {
		name      string
		asker     *fakeAsker
		on        bool
		policy    string
		exit      fault.Exit
		questions int
		runs      int
	}{
		{"yes", always(approver.Answer{Approved: true}), true, "", fault.Success, 2, 2},
		{"yes for the session", always(approver.Answer{Approved: true, Scope: "session"}), true, "", fault.Success, 1, 2},
		{"no", always(approver.Answer{}), true, "", fault.Blocked, 2, 0},
		{"nobody", nil, true, "", fault.Blocked, 0, 0},
		{"no sandbox to leave", always(approver.Answer{}), false, "", fault.Success, 0, 2},
		{"granular without it", always(approver.Answer{Approved: true}), true,
			"version: 1\ndefault: allow\non_ask: approver\napproval: {granular: {sandbox_approval: false, rules: true, mcp_elicitations: true}}\n", fault.Blocked, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got = nil
			out, lines := play(t, script, func(o *Options) {
				text := c.policy
				if text == "" {
					text = "version: 1\ndefault: allow\non_ask: approver\napproval: on-request\n"
				}
				o.Policy = loaded(t, text, o.Cwd)
				o.Tools = []tools.Tool{tool}
				if c.on {
					o.Started.Sandbox = &event.Sandbox{Mode: "workspace-write"}
				}
				if c.asker != nil {
					o.Approvals.Asker = c.asker
				}
			})
			questions := 0
			if c.asker != nil {
				questions = len(c.asker.asked)
			}
			if out.End.Exit != c.exit || questions != c.questions || len(got) != c.runs {
				t.Errorf("ended with %+v, %d questions, ran with %+v:\n%s", out.End, questions, got, lines)
			}
			if c.runs > 0 && c.on && !got[len(got)-1].Off {
				t.Errorf("it ran with %+v", got)
			}
			if c.questions > 0 && !strings.Contains(lines, "it asks to run outside the sandbox: it needs the display") {
				t.Error("the reason is not in the request")
			}
		})
	}
}
