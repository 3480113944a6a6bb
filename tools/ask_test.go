package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// ask calls the tool with the answers that were given.
func ask(t *testing.T, args string, answers map[string]string) (Result, []event.Body) {
	t.Helper()
	var got []event.Body
	env := Env{CallID: "c1", Emit: func(b event.Body) { got = append(got, b) }, Answers: func(id string) (string, bool) {
		label, ok := answers[id]
		return label, ok
	}}
	call, err := requestUserInput.Prepare(env, Input{Text: args})
	if err != nil {
		t.Fatal(err)
	}
	if len(call.Actions) != 0 {
		t.Errorf("it declares %v", call.Actions)
	}
	res, err := call.Run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return res, got
}

const twoQuestions = `{"questions":[
{"id":"target","header":"Target","question":"Where to?","options":[{"label":"Staging","description":"x"},{"label":"Production","description":"y"}]},
{"id":"when","header":"When","question":"When?","options":[{"label":"Now","description":"x"}]}]}`

func TestAnswersComeInTheOrderOfTheQuestions(t *testing.T) {
	res, events := ask(t, twoQuestions, map[string]string{"when": "on Friday, after lunch", "target": "staging", "other": "x"})
	want := `[{"id":"target","answers":["Staging"]},{"id":"when","answers":["on Friday, after lunch"]}]`
	if res.IsError || res.Text != want {
		t.Errorf("got  %+v\nwant %s", res, want)
	}
	wantEvents := []event.Body{
		event.InputRequestedEvent{CorrelationID: "c1.1", Kind: "question", Prompt: "Where to?", Choices: []string{"Staging", "Production"}, ToolCallID: "c1"},
		event.InputResolvedEvent{CorrelationID: "c1.1", Answered: true, DecidedBy: "grant"},
		event.InputRequestedEvent{CorrelationID: "c1.2", Kind: "question", Prompt: "When?", Choices: []string{"Now"}, ToolCallID: "c1"},
		event.InputResolvedEvent{CorrelationID: "c1.2", Answered: true, DecidedBy: "grant"},
	}
	if d := cmp.Diff(wantEvents, events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestQuestionWithoutAnAnswerResolvesAtOnce(t *testing.T) {
	res, events := ask(t, twoQuestions, map[string]string{"when": "Now"})
	if !res.IsError || res.Code != CodeNeedsInput || !strings.Contains(res.Text, "nobody can answer target.") ||
		!strings.Contains(res.Text, `[{"id":"when","answers":["Now"]}]`) {
		t.Errorf("got %+v", res)
	}
	if e, ok := events[1].(event.InputResolvedEvent); !ok || e.Answered || e.DecidedBy != "policy" || e.Reason == "" {
		t.Errorf("got %+v", events[1])
	}
}

func TestQuestionsThatCannotBeAskedAreRefused(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"none", `{"questions":[]}`, "requires at least one question"},
		{"no list", `{}`, "missing field `questions`"},
		{"no options", `{"questions":[{"id":"a","header":"A","question":"A?","options":[]}]}`, "request_user_input requires non-empty options for every question"},
		{"no id", `{"questions":[{"header":"A","question":"A?","options":[{"label":"x"}]}]}`, "questions[0]: missing field `id`"},
		{"no question", `{"questions":[{"id":"a","options":[{"label":"x"}]}]}`, "questions[0]: missing field `question`"},
		{"no label", `{"questions":[{"id":"a","question":"A?","options":[{"label":"x"},{}]}]}`, "questions[0].options[1]: missing field `label`"},
	} {
		if _, err := requestUserInput.Prepare(Env{}, Input{Text: c.args}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
