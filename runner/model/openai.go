package model

import (
	"context"
	"iter"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	oai "github.com/openai/openai-go/v3/responses"
)

// The OpenAI Responses API. The SDK builds and sends the request; the stream
// is read by our own reader, because the SDK's refuses what the contract
// demands: it takes a stream without its end marker for a good one, ends at
// lines beyond a fixed size without saying so, and decodes every event into a
// union of some sixty types.

// responses is the Provider of a server that speaks the Responses API.
type responses struct {
	endpoint
	service oai.ResponseService
}

// newResponses returns the provider of an endpoint whose base URL includes the
// version, such as /v1.
func newResponses(p endpoint) Provider {
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
		opts = append(opts, option.WithAPIKey(p.Key))
	}
	for k, v := range p.Headers {
		opts = append(opts, option.WithHeader(k, v))
	}
	return &responses{endpoint: p, service: oai.NewResponseService(opts...)}
}

// Name returns the provider's id.
func (p *responses) Name() string { return p.endpoint.Name }

// Stream asks for one response.
func (p *responses) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		body, err := p.request(req)
		if err != nil {
			yield(Delta{}, err)
			return
		}
		p.endpoint.exchange(ctx, func(ctx context.Context, into **http.Response) error {
			return p.service.NewStreaming(ctx, *body, option.WithResponseInto(into),
				option.WithHeader("Accept", "text/event-stream")).Err()
		}, newResponsesReader(&p.endpoint, req), yield)
	}
}
