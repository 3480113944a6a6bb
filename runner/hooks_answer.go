package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"drover/runner/approver"
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

// The keys of an answer and of its specific part. Each has one spelling.
var (
	answerKeys   = []string{"continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput"}
	specificKeys = []string{"hookEventName", "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"}
)

// readHookAnswer reads what a hook printed. Nothing is no objection. A key that
// is not known is an error, since a misspelt refusal would be none; so is one
// that occurs twice, of which the first may refuse, and whatever has no meaning
// for the event. At the session's start a text is context for the model.
func readHookAnswer(at HookEvent, stdout string) (hookAnswer, error) {
	text := strings.TrimSpace(strings.ToValidUTF8(stdout, "\uFFFD"))
	if text == "" {
		return hookAnswer{}, nil
	}
	if at == SessionStart && text[0] != '{' {
		return hookAnswer{context: text}, nil
	}
	if text[0] != '{' {
		return hookAnswer{}, errors.New("it is no JSON object")
	}
	specific, err := knownKeys([]byte(text), answerKeys)
	if err == nil && isGiven(specific["hookSpecificOutput"]) {
		specific, err = knownKeys(specific["hookSpecificOutput"], specificKeys)
		if input := specific["updatedInput"]; err == nil && len(input) > 0 && input[0] == '{' {
			_, err = approver.Object(input)
		}
	}
	if err != nil {
		return hookAnswer{}, err
	}
	var w wireAnswer
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return hookAnswer{}, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return w.read(at)
}

// knownKeys reads an object that has the known keys, each at most once. A
// decision that is empty is none that anybody meant.
func knownKeys(text []byte, known []string) (map[string]json.RawMessage, error) {
	fields, err := approver.Object(text)
	for key, value := range fields {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("the key %q is not known", cutTo(key, 60))
		}
		if strings.HasSuffix(strings.ToLower(key), "decision") && string(value) == `""` {
			return nil, fmt.Errorf("the %s is empty", key)
		}
	}
	return fields, err
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
