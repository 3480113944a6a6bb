package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// hookAnswer is what a hook says.
type hookAnswer struct {
	// block refuses, ask has somebody asked, allow has no effect: the policy
	// alone allows. stop ends the run.
	block, ask, allow, stop bool
	reason                  string
	// input replaces that of the call; nil keeps it.
	input json.RawMessage
	// context is for the model, message for people.
	context, message string
}

// wireAnswer is an answer as it is written.
type wireAnswer struct {
	Continue       *bool         `json:"continue"`
	StopReason     string        `json:"stopReason"`
	SuppressOutput bool          `json:"suppressOutput"`
	SystemMessage  string        `json:"systemMessage"`
	Decision       string        `json:"decision"`
	Reason         string        `json:"reason"`
	Specific       *wireSpecific `json:"hookSpecificOutput"`
}

type wireSpecific struct {
	HookEventName            string          `json:"hookEventName"`
	PermissionDecision       string          `json:"permissionDecision"`
	PermissionDecisionReason string          `json:"permissionDecisionReason"`
	UpdatedInput             json.RawMessage `json:"updatedInput"`
	AdditionalContext        string          `json:"additionalContext"`
}

// readHookAnswer reads what a hook printed. Nothing is no objection. A key that
// is not known is an error, since a misspelt refusal would be none; so is
// whatever has no meaning for the event. At the session's start a text is
// context for the model.
func readHookAnswer(at HookEvent, stdout string) (hookAnswer, error) {
	text := strings.TrimSpace(stdout)
	if text == "" {
		return hookAnswer{}, nil
	}
	if at == SessionStart && text[0] != '{' {
		return hookAnswer{context: text}, nil
	}
	if text[0] != '{' {
		return hookAnswer{}, errors.New("it is no JSON object")
	}
	var w wireAnswer
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return hookAnswer{}, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return hookAnswer{}, errors.New("something follows the JSON object")
	}
	return w.read(at)
}

func (w wireAnswer) read(at HookEvent) (a hookAnswer, err error) {
	a.reason, a.message = w.Reason, w.SystemMessage
	switch {
	case w.Decision == "":
	case at == SessionStart:
		return a, errors.New("decision has no meaning for SessionStart")
	case w.Decision == "block":
		a.block = true
	case w.Decision == "approve" && at != PostToolUse:
		a.allow = at == PreToolUse
	default:
		return a, fmt.Errorf("the decision %q is not known", cutTo(w.Decision, 40))
	}
	if w.Specific != nil {
		if err := w.Specific.read(at, &a); err != nil {
			return a, err
		}
	}
	if w.Continue != nil && !*w.Continue {
		a.stop = true
		if w.StopReason != "" {
			a.reason = w.StopReason
		}
	}
	return a, nil
}

func (w wireSpecific) read(at HookEvent, a *hookAnswer) error {
	if w.HookEventName != "" && w.HookEventName != string(at) {
		return fmt.Errorf("hookEventName is %q, and this is %s", cutTo(w.HookEventName, 40), at)
	}
	a.context = w.AdditionalContext
	if at != PreToolUse {
		if w.PermissionDecision != "" || w.PermissionDecisionReason != "" || isGiven(w.UpdatedInput) {
			return fmt.Errorf("permissionDecision and updatedInput have no meaning for %s", at)
		}
		return nil
	}
	switch w.PermissionDecision {
	case "":
	case "allow":
		a.allow = true
	case "deny":
		a.block = true
	case "ask":
		a.ask = true
	default:
		return fmt.Errorf("the permissionDecision %q is not one of allow, deny, ask", cutTo(w.PermissionDecision, 40))
	}
	if w.PermissionDecisionReason != "" {
		a.reason = w.PermissionDecisionReason
	}
	if isGiven(w.UpdatedInput) {
		if w.UpdatedInput[0] != '{' {
			return errors.New("updatedInput is no object")
		}
		a.input = w.UpdatedInput
	}
	return nil
}

func isGiven(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}
