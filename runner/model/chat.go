package model

import (
	"bytes"
	"context"
	"iter"
	"net/http"
	"strings"
	"sync"
)

// The Chat Completions API, as many servers speak it. Only this wire format is
// written by hand, because it is the one whose servers differ most: the reader
// takes what occurs in the wild (chat_stream.go, chat_calls.go), and the
// request leaves out what a server has once refused.

// chat is the Provider of one Chat Completions server.
type chat struct {
	endpoint
	mu   sync.Mutex
	form chatForm
}

// chatForm is what this server has taught us about requests.
type chatForm struct {
	noStreamOptions, noParallelCalls, noResponseFormat bool
	// newMaxTokens sends max_completion_tokens instead of max_tokens.
	newMaxTokens bool
	// reasoning overrules ReplayReasoning auto after a refusal.
	reasoning reasoningRule
	// flips bounds how often reasoning may change.
	flips int
}

// reasoningRule says whether reasoning goes back with calls.
type reasoningRule int

const (
	// asReceived sends it to servers that sent it as reasoning_content.
	asReceived reasoningRule = iota
	forced
	forbidden
)

func newChat(p endpoint) Provider { return &chat{endpoint: p} }

// Name returns the provider's name.
func (c *chat) Name() string { return c.endpoint.Name }

// Stream sends one request and reads the response as it arrives.
func (c *chat) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if err := c.stream(ctx, req, yield); err != nil {
			yield(Delta{}, err)
		}
	}
}

func (c *chat) stream(ctx context.Context, req *Request, yield func(Delta, error) bool) error {
	// Reading ends with the request's own context: after the end marker
	// nothing may hold it.
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	form := c.form
	c.mu.Unlock()
	resp, err := c.send(own, req, form)
	if err != nil {
		return c.failure(ctx, err, false)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		e := c.httpError(resp)
		if ctx.Err() != nil {
			return cancelled(ctx)
		}
		if c.learn(form, e) {
			e.Retryable = true
		}
		return e
	}
	defer resp.Body.Close()
	s := newChatStream(c, req, cancel)
	s.begin(yield)
	s.open()
	err = s.read(ctx, resp.Body)
	if s.left() {
		return nil
	}
	return err
}

func (c *chat) send(ctx context.Context, req *Request, form chatForm) (*http.Response, error) {
	body, err := c.encode(req, form)
	if err != nil {
		return nil, &Error{Kind: ErrRequest, Message: c.clean(err.Error(), maxMessage), Err: err}
	}
	base, query, _ := strings.Cut(c.BaseURL, "?")
	url := base + "/chat/completions"
	if query != "" {
		url += "?" + query
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("User-Agent", c.UserAgent)
	if c.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for name, value := range c.Headers {
		r.Header.Set(name, value)
	}
	return repeatable(r, c.Client.Do)
}

// learn looks whether a refusal names a part of the request that the server
// does not know. It returns true when the same request will be sent in another
// form the next time.
func (c *chat) learn(sent chatForm, e *Error) bool {
	if e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	text := strings.ToLower(e.Message)
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.form
	switch {
	case strings.Contains(text, "stream_options"):
		f.noStreamOptions = true
	case strings.Contains(text, "parallel_tool_calls"):
		f.noParallelCalls = true
	case strings.Contains(text, "max_completion_tokens"):
		f.newMaxTokens = true
	case strings.Contains(text, "response_format"), strings.Contains(text, "json_schema"):
		f.noResponseFormat = true
	case strings.Contains(text, "reasoning_content") && c.ReplayReasoning == "auto" && f.flips < 2 && *f == sent:
		f.flips++
		if f.reasoning == asReceived {
			// What was sent decides what is wrong with it.
			f.reasoning = forced
			if strings.Contains(text, "not") && !strings.Contains(text, "must") && !strings.Contains(text, "missing") {
				f.reasoning = forbidden
			}
		} else {
			f.reasoning = forced + forbidden - f.reasoning
		}
	}
	if *f == sent {
		return false
	}
	if c.Logger != nil {
		c.Logger.Info("the server refused a part of the request; it is sent in another form", "provider", c.endpoint.Name, "message", e.Message)
	}
	return true
}
