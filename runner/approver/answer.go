package approver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"drover/output/event"
)

// The types of answers.
const (
	typeApproval = "tool.approval.response"
	typeInput    = "input.response"
)

// Answer is what an approver said.
type Answer struct {
	// CorrelationID names the request.
	CorrelationID string
	// Approved is a yes. To a question it says that there is an answer, which is
	// Text.
	Approved bool
	Text     string
	// Scope is how long a yes lasts; it is never empty.
	Scope  event.Scope
	Reason string
	// Rule is the rule to be kept for a longer scope: an object, or the id of a
	// suggested one as a string. Nil is the first that was suggested.
	Rule json.RawMessage
	// Args are new arguments for the call; nil leaves them as they are.
	Args json.RawMessage

	// question says that it answers a question and not a request for approval.
	question bool
}

// maxAnswer is how long a line with an answer may be, in bytes.
const maxAnswer = 1 << 20

// maxReason bounds the reason, which goes to the model and into the stream.
const maxReason = 4 << 10

// errTooLong is the error for a line beyond maxAnswer.
var errTooLong = fmt.Errorf("the line is longer than %d bytes", maxAnswer)

// ParseAnswer reads one answer line. It is strict: an answer that could be read
// in two ways is none, because the one who wrote it may have meant the other.
func ParseAnswer(line []byte) (Answer, error) {
	if len(line) > maxAnswer {
		return Answer{}, errTooLong
	}
	fields, err := Object(line)
	if err != nil {
		return Answer{}, err
	}
	r := reader{fields: fields}
	if v := r.number("v", true); r.err == nil && v != event.Version {
		return Answer{}, fmt.Errorf("version %d is not known, only %d", v, event.Version)
	}
	typ := r.text("type", true)
	a := Answer{CorrelationID: r.text("correlation_id", true), Scope: "once", Reason: cut(r.text("reason", false), maxReason)}
	switch {
	case r.err != nil:
		return Answer{}, r.err
	case typ == typeApproval:
		a.Approved = r.boolean("approved", true)
		if scope := r.text("scope", false); scope != "" {
			a.Scope = event.Scope(scope)
		}
		a.Rule, a.Args = r.raw("rule"), r.raw("args")
		if !slices.Contains([]event.Scope{"once", "session", "always"}, a.Scope) {
			r.fail("scope %q is none of once, session, always", string(a.Scope))
		}
		if a.Rule != nil && a.Rule[0] != '{' && a.Rule[0] != '"' {
			r.fail("rule is neither an object nor an id")
		}
		if a.Args != nil && a.Args[0] != '{' {
			r.fail("args is no object")
		}
	case typ == typeInput:
		a.question, a.Approved = true, true
		if _, given := fields["answered"]; given {
			a.Approved = r.boolean("answered", true)
		}
		a.Text = r.text("answer", a.Approved)
	default:
		return Answer{}, fmt.Errorf("type %q is neither %s nor %s", typ, typeApproval, typeInput)
	}
	return a, r.finish()
}

// Object reads a JSON object whose keys are all different, and nothing after it:
// of a key that occurs twice nobody knows which one was meant.
func Object(line []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("it is not UTF-8 text")
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("it is no JSON: %w", err)
		}
		key, _ := t.(string)
		if _, twice := fields[key]; twice {
			return nil, fmt.Errorf("the key %q occurs twice", cut(key, 60))
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("it is no JSON: %w", err)
		}
		fields[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return fields, nil
}

// reader takes the known keys out of an object and keeps the first error.
type reader struct {
	fields map[string]json.RawMessage
	err    error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// take returns the value of a key, nil if it is absent or null.
func (r *reader) take(key string, required bool) json.RawMessage {
	raw, ok := r.fields[key]
	delete(r.fields, key)
	if ok && string(raw) == "null" {
		raw, ok = nil, false
	}
	if !ok && required {
		r.fail("%s is missing", key)
	}
	return raw
}

func (r *reader) text(key string, required bool) (s string) {
	if raw := r.take(key, required); raw != nil && json.Unmarshal(raw, &s) != nil {
		r.fail("%s is no text", key)
	}
	if required && s == "" {
		r.fail("%s is empty", key)
	}
	return s
}

func (r *reader) number(key string, required bool) (n int) {
	if raw := r.take(key, required); raw != nil && json.Unmarshal(raw, &n) != nil {
		r.fail("%s is no number", key)
	}
	return n
}

func (r *reader) boolean(key string, required bool) (b bool) {
	if raw := r.take(key, required); raw != nil && json.Unmarshal(raw, &b) != nil {
		r.fail("%s is neither true nor false", key)
	}
	return b
}

func (r *reader) raw(key string) json.RawMessage { return r.take(key, false) }

// finish reports the first error; a key that nobody has taken is one, too: it
// may be a misspelt one that was to narrow the answer.
func (r *reader) finish() error {
	if r.err != nil {
		return r.err
	}
	for key := range r.fields {
		return fmt.Errorf("the key %q is not known", cut(key, 60))
	}
	return nil
}

// cut returns at most n bytes of s and whole characters, and at the end a mark
// by which a secret that was cut is known.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
