package model

import (
	"context"
	"iter"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// The Anthropic Messages API. As with Responses, the SDK builds and sends the
// request, and our own reader reads the stream.

// messages is the Provider of a server that speaks the Messages API.
type messages struct {
	endpoint
	service anthropic.MessageService
}

// newMessages returns the provider of an endpoint whose base URL ends before
// the version.
func newMessages(p endpoint) Provider {
	opts := []option.RequestOption{
		option.WithBaseURL(p.BaseURL),
		option.WithHTTPClient(p.Client),
		option.WithMaxRetries(0),
	}
	opts = append(opts, option.WithMiddleware(repeatable))
	if p.UserAgent != "" {
		opts = append(opts, option.WithHeader("User-Agent", p.UserAgent))
	}
	if p.Key != "" {
		// The SDK sends the key as a bearer token, which the vendor's current
		// API takes; other servers of this API know the older header only.
		opts = append(opts, option.WithAPIKey(p.Key), option.WithHeader("X-Api-Key", p.Key))
	}
	for k, v := range p.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	return &messages{endpoint: p, service: anthropic.NewMessageService(opts...)}
}

// Name returns the provider's id.
func (p *messages) Name() string { return p.endpoint.Name }

// Stream asks for one response.
func (p *messages) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		body, err := p.request(req)
		if err != nil {
			yield(Delta{}, err)
			return
		}
		p.endpoint.exchange(ctx, func(ctx context.Context, into **http.Response) error {
			return p.service.NewStreaming(ctx, *body, option.WithResponseInto(into),
				option.WithHeader("Accept", "text/event-stream")).Err()
		}, newMessagesReader(&p.endpoint, req), yield)
	}
}
