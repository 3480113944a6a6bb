package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"drover/output/event"
)

// CodeNeedsInput is the code of a result whose question nobody can answer.
// What becomes of the run is for the policy to say.
const CodeNeedsInput = "needs_input"

// requestUserInput asks questions. Their answers were given before the run, or
// somebody is there who gives them. Otherwise a question resolves at once: no
// run waits for a person who is not there.
var requestUserInput = New(Def[askInput]{
	Name:     "request_user_input",
	Doc:      "Asks the user one to three short questions and returns the answers. Each question may also be answered in free words; do not add an option for that.",
	Asks:     true,
	Approval: "never",
	Check:    checkAsk,
	Display:  func(in askInput, _ Env) string { return "ask: " + in.Questions[0].Question },
	Run:      runAsk,
})

type askInput struct {
	Questions []askQuestion `json:"questions" jsonschema:"One to three questions."`
}

type askQuestion struct {
	ID       string      `json:"id" jsonschema:"snake_case name of the question."`
	Header   string      `json:"header" jsonschema:"At most 12 characters."`
	Question string      `json:"question" jsonschema:"One sentence."`
	Options  []askOption `json:"options" jsonschema:"Two or three choices that exclude each other, the recommended one first."`
}

type askOption struct {
	Label       string `json:"label" jsonschema:"One to five words."`
	Description string `json:"description" jsonschema:"What it means, in one sentence."`
}

// askAnswer is one element of the result, in the order of the questions.
type askAnswer struct {
	ID      string   `json:"id"`
	Answers []string `json:"answers"`
}

func checkAsk(in askInput, _ Env) error {
	if len(in.Questions) == 0 {
		return errors.New("request_user_input requires at least one question")
	}
	for i, q := range in.Questions {
		switch {
		case q.ID == "":
			return &ArgumentError{Message: fmt.Sprintf("questions[%d]: missing field `id`", i)}
		case q.Question == "":
			return &ArgumentError{Message: fmt.Sprintf("questions[%d]: missing field `question`", i)}
		case len(q.Options) == 0:
			return errors.New("request_user_input requires non-empty options for every question")
		}
		for j, o := range q.Options {
			if o.Label == "" {
				return &ArgumentError{Message: fmt.Sprintf("questions[%d].options[%d]: missing field `label`", i, j)}
			}
		}
	}
	return nil
}

func runAsk(ctx context.Context, in askInput, env Env) (Result, error) {
	answers := []askAnswer{}
	var open []string
	for i, q := range in.Questions {
		label, ok := q.settle(ctx, env, fmt.Sprintf("%s.%d", env.CallID, i+1))
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		if ok {
			answers = append(answers, askAnswer{ID: q.ID, Answers: []string{label}})
		} else {
			open = append(open, q.ID)
		}
	}
	text, err := json.Marshal(answers)
	if err != nil {
		return Result{}, fmt.Errorf("encode answers: %w", err)
	}
	if len(open) > 0 {
		return unanswered(open, string(text), len(answers) > 0), nil
	}
	labels := make([]string, len(answers))
	for i, a := range answers {
		labels[i] = a.Answers[0]
	}
	return Result{Text: string(text), Display: display(strings.Join(labels, ", ")), Structured: answers, OutputBytes: int64(len(text))}, nil
}

// answer finds the answer that was given for the question's id.
func (q askQuestion) answer(env Env) (string, bool) {
	if env.Answers == nil {
		return "", false
	}
	given, ok := env.Answers(q.ID)
	if !ok {
		return "", false
	}
	return q.label(given), true
}

// label is an answer as the model gets it. One that names an option, in whatever
// case, becomes that option's label; any other is an answer in free words,
// which every question takes.
func (q askQuestion) label(given string) string {
	for _, o := range q.Options {
		if o.Label == given {
			return given
		}
	}
	for _, o := range q.Options {
		if strings.EqualFold(strings.TrimSpace(o.Label), strings.TrimSpace(given)) {
			return o.Label
		}
	}
	return given
}

// settle puts a question and its outcome into the stream. What was not answered
// before the run is asked where somebody can answer.
func (q askQuestion) settle(ctx context.Context, env Env, id string) (label string, answered bool) {
	asked := event.InputRequestedEvent{CorrelationID: id, Kind: "question", Prompt: q.Question, ToolCallID: env.CallID}
	for _, o := range q.Options {
		asked.Choices = append(asked.Choices, o.Label)
	}
	env.Emit(asked)
	resolved := event.InputResolvedEvent{CorrelationID: id, DecidedBy: "grant"}
	label, resolved.Answered = q.answer(env)
	switch {
	case resolved.Answered:
	case env.Ask == nil:
		resolved.DecidedBy = "policy"
		resolved.Reason = "no answer was given for " + q.ID + ", and nobody can be asked"
	default:
		text, by, err := env.Ask(ctx, id)
		label, resolved.Answered, resolved.DecidedBy = q.label(text), err == nil, by
		if err != nil {
			resolved.Reason = "no answer was given for " + q.ID + ": " + err.Error()
		}
	}
	env.Emit(resolved)
	return label, resolved.Answered
}

// unanswered tells the model to go on by itself.
func unanswered(open []string, answers string, some bool) Result {
	text := "request_user_input was cancelled before receiving a response: nobody can answer " + strings.Join(open, ", ") +
		". Do not ask again; choose the most sensible option yourself and name the choice in the final answer."
	if some {
		text += "\nThe other answers: " + answers
	}
	res := Fail(CodeNeedsInput, text)
	res.Display = display("nobody can answer " + strings.Join(open, ", "))
	return res
}
