package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"drover/runner/internal/sse"
)

// eventReader turns the events of one wire format into deltas. An emitter
// makes most of it.
type eventReader interface {
	begin(yield func(Delta, error) bool)
	accept()
	// read takes one event; its error ends the stream.
	read(name string, data []byte) error
	// cut takes the stream's clean end and returns the error that it is, if
	// the end marker was missing.
	cut() error
	// over says that nothing more is wanted: the response is finished, or the
	// caller has left.
	over() bool
	finished() bool
	left() bool
	// begun says that the response has begun.
	begun() bool
}

// exchange sends a request with send, which stores the response, and yields
// what r makes of the stream.
func (p *endpoint) exchange(ctx context.Context, send func(ctx context.Context, into **http.Response) error, r eventReader, yield func(Delta, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var res *http.Response
	err := send(ctx, &res)
	if res != nil && res.Body != nil {
		defer res.Body.Close()
	}
	if err != nil || res == nil || res.StatusCode/100 != 2 {
		yield(Delta{}, p.refusal(ctx, res, err))
		return
	}
	r.begin(yield)
	// The clock of the stream begins here: a server that has accepted the
	// request and then says nothing must not get the longer one.
	r.accept()
	err = p.readBody(ctx, res.Body, r)
	switch {
	case r.finished():
		// Only a connection that was read to its end serves the next turn, also
		// where the caller leaves with Finish.
		timer := time.AfterFunc(drainWait, cancel)
		defer timer.Stop()
		// Nothing but the end is expected; what else comes is not wanted.
		_, _ = io.CopyN(io.Discard, res.Body, 4096)
	case err != nil && !r.left():
		yield(Delta{}, err)
	}
}

// repeatable lets the transport repeat a request when a connection that was
// kept from an earlier turn turns out to be closed. The header is not sent.
func repeatable(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	r.Header["Idempotency-Key"] = []string{}
	return next(r)
}

// refusal is the error of a request that got no stream.
func (p *endpoint) refusal(ctx context.Context, res *http.Response, err error) *Error {
	if redirect := (*redirectError)(nil); errors.As(err, &redirect) {
		return p.failure(ctx, err, false)
	}
	if res != nil && res.StatusCode/100 != 2 && ctx.Err() == nil {
		// The SDKs have read the body and put it back.
		return p.httpError(res)
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return p.failure(ctx, err, false)
}

// readBody reads the body of a success.
func (p *endpoint) readBody(ctx context.Context, body io.Reader, r eventReader) error {
	head, err := readHead(body)
	switch {
	case len(head) > 0 && strings.IndexByte("<{[", head[0]) >= 0:
		return p.document(io.MultiReader(bytes.NewReader(head), body))
	case len(head) > 0:
		err = p.readEvents(ctx, io.MultiReader(bytes.NewReader(head), body), r)
		if e := (*Error)(nil); errors.As(err, &e) && e.Message == noAnswer {
			// What came instead says more.
			return p.malformed(noAnswer, head)
		}
		return err
	case errors.Is(err, io.EOF):
		return p.malformed("the server sent an empty answer", nil)
	}
	return p.failure(ctx, err, false)
}

// document is the error of a success that is no stream: a gateway's login page,
// or an error that came without its status.
func (p *endpoint) document(body io.Reader) *Error {
	// A body that breaks explains less; it is no answer all the same.
	data, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if data[0] == '<' {
		return p.malformed("the server sent a web page", []byte(plainText(string(data))))
	}
	v := gjson.ParseBytes(data)
	if v.IsArray() {
		v = v.Get("0")
	}
	if failed := v.Get("error"); v.Get("type").Str == "error" || failed.Exists() && failed.Type != gjson.Null {
		return p.streamError(data)
	}
	return p.malformed("the server sent a document instead of a stream", data)
}

// noAnswer is the message of a stream that had no event of an answer.
const noAnswer = "the server sent no answer"

// malformed is the error of an answer that is none.
func (p *endpoint) malformed(what string, data []byte) *Error {
	if said := p.clean(excerpt(data), maxMessage); said != "" {
		what += ": " + said
	}
	return &Error{Kind: ErrMalformed, Retryable: true, Message: what,
		Fix: "check base_url of the provider " + p.Name + ", which is " + p.shownURL()}
}

// readEvents reads the stream to its end marker.
func (p *endpoint) readEvents(ctx context.Context, body io.Reader, r eventReader) error {
	events := sse.NewReader(body, maxEventBytes)
	for {
		e, err := events.Next()
		half := errors.Is(err, io.ErrUnexpectedEOF)
		if half && len(e.Data) > 0 && json.Valid(e.Data) || err == nil && len(e.Data) > 0 {
			// Some servers leave out the blank line behind the last event.
			if string(e.Data) == "[DONE]" {
				continue
			}
			if err := r.read(e.Type, e.Data); err != nil {
				return err
			}
			if r.over() {
				return nil
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) || half && ctx.Err() == nil:
			return r.cut()
		default:
			return p.failure(ctx, err, r.begun())
		}
	}
}

// decode decodes what it can of an event. A member of an unexpected type is
// left out: what matters is checked where it is used. Only what is no JSON is
// an error.
func (p *endpoint) decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var wrongType *json.UnmarshalTypeError
	if err == nil || errors.As(err, &wrongType) {
		return nil
	}
	return p.malformed("the server sent an event that is no JSON", data)
}

// isObject tells whether raw is a JSON object.
func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// joinText returns the text that a member of an event brings, whole characters
// only: some servers cut inside a character. What is no string brings nothing.
func joinText(j *textJoiner, raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return j.join(gjson.Result{Raw: string(raw)})
}
