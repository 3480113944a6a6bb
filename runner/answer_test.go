package runner

import (
	"fmt"
	"strings"
	"testing"

	"drover/output/fault"
)

func TestAnswerThatNobodyCanSeeIsNone(t *testing.T) {
	for _, text := range []string{"", " \n\t", "\u200b", "\x00\x01", "\x1b[31m\x1b[0m", "\x1b]0;title\x07", "\ufeff\u2060 \u00ad", "\u3164", "\u0301", "\U000e0041"} {
		out, _ := play(t, fmt.Sprintf(`{"text":%s}`, quote(text)), nil)
		if out.End.Exit != fault.Incomplete || out.End.Reason != "empty_answer" {
			t.Errorf("%q ended with %+v", text, out.End)
		}
	}
	for _, text := range []string{".", "\x1b[31mx\x1b[0m", "é", "好", "✓", "👍", "\u200b1"} {
		out, _ := play(t, fmt.Sprintf(`{"text":%s}`, quote(text)), nil)
		if out.End.Exit != fault.Success || out.Message != text {
			t.Errorf("%q ended with %+v", text, out.End)
		}
	}
}

// quote writes a JSON string.
func quote(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x`, 0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

func TestLastResponseBeyondTheBudgetIsNoSuccess(t *testing.T) {
	const answer = `{"text":"Done.","usage":{"input_tokens":90,"output_tokens":30}}`
	out, stream := play(t, answer, func(o *Options) { o.Limits.Tokens = 100 })
	if out.End.Exit != fault.LimitSpend || out.End.Reason != "limit_tokens" || out.Message != "Done." || !strings.Contains(stream, `"type":"limit.reached"`) {
		t.Errorf("ended with %+v, message %q", out.End, out.Message)
	}
	out, _ = play(t, answer, func(o *Options) { o.Limits.Tokens = 121 })
	if out.End.Exit != fault.Success {
		t.Errorf("within the budget: %+v", out.End)
	}
	out, _ = play(t, answer, func(o *Options) { o.Limits.Turns = 1 })
	if out.End.Exit != fault.Success {
		t.Errorf("the last turn that is allowed: %+v", out.End)
	}
}

// TestOutputOfAnEarlierAnswerIsNotReported has a check send back an answer
// that matched, and only answers that miss the schema after it.
func TestOutputOfAnEarlierAnswerIsNotReported(t *testing.T) {
	schema, err := CompileSchema("s", []byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := play(t, `{"text":"{\"n\":1}"}`+"\n"+strings.Repeat(`{"text":"no"}`+"\n", 3), func(o *Options) {
		o.Schema, o.Checks, o.CheckRetries = schema, []string{"false"}, 2
	})
	if out.End.Exit != fault.InvalidOutput || out.StructuredOutput != nil || out.StructuredError == "" {
		t.Errorf("ended with %+v, output %s", out.End, out.StructuredOutput)
	}
}

func TestAnnouncedCallsThatAreMissingAreAskedForAgain(t *testing.T) {
	out, stream := play(t, `{"text":"I call.","finish":"tool_calls"}`+"\n"+`{"text":"Done."}`, nil)
	if out.End.Exit != fault.Success || out.Message != "Done." || !strings.Contains(stream, `"error_kind":"malformed_response"`) {
		t.Errorf("ended with %+v, message %q", out.End, out.Message)
	}
	out, _ = play(t, strings.Repeat(`{"text":"I call.","finish":"tool_calls"}`+"\n", 20), nil)
	if out.End.Exit != fault.Provider || out.Message != "" {
		t.Errorf("ended with %+v, message %q", out.End, out.Message)
	}
}
