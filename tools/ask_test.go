package tools

import (
	"context"
	"errors"
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

func TestSomebodyAnswersWhatWasNotAnsweredBefore(t *testing.T) {
	args := `{"questions":[{"id":"a","header":"A","question":"A?","options":[{"label":"One","description":"1"}]},{"id":"b","header":"B","question":"B?","options":[{"label":"Two","description":"2"}]}]}`
	for _, c := range []struct {
		name, text string
		err        error
		want       string
		resolved   event.InputResolvedEvent
	}{
		{"an option in another case", " two ", nil, `[{"id":"a","answers":["One"]},{"id":"b","answers":["Two"]}]`,
			event.InputResolvedEvent{CorrelationID: "call.2", Answered: true, DecidedBy: "tty"}},
		{"other words", "three", nil, `[{"id":"a","answers":["One"]},{"id":"b","answers":["three"]}]`,
			event.InputResolvedEvent{CorrelationID: "call.2", Answered: true, DecidedBy: "tty"}},
		{"nobody", "", errors.New("nobody answered within 5m0s"), "nobody can answer b",
			event.InputResolvedEvent{CorrelationID: "call.2", DecidedBy: "tty", Reason: "no answer was given for b: nobody answered within 5m0s"}},
	} {
		var last event.Body
		env := Env{
			CallID: "call", Emit: func(b event.Body) { last = b },
			Answers: func(id string) (string, bool) { return "one", id == "a" },
			Ask: func(_ context.Context, id string) (string, event.Decider, error) {
				if b, ok := last.(event.InputRequestedEvent); !ok || b.CorrelationID != id || id != "call.2" {
					t.Errorf("asked for %s after %+v", id, last)
				}
				return c.text, "tty", c.err
			},
		}
		call, err := requestUserInput.Prepare(env, Input{Text: args})
		if err != nil {
			t.Fatal(err)
		}
		res, err := call.Run(t.Context(), env)
		if err != nil || !strings.Contains(res.Text, c.want) || res.IsError != (c.err != nil) {
			t.Errorf("%s: %+v, %v", c.name, res, err)
		}
		if d := cmp.Diff(c.resolved, last); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
