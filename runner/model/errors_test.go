package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"drover/output/fault"
)

var testEndpoint = endpoint{Name: "acme", BaseURL: "https://user:hidden@acme.example/v1?sig=hidden", KeyEnv: "ACME_KEY", secrets: []string{keyOfTests}}

func TestBodiesOfManyServers(t *testing.T) {
	for _, c := range []struct {
		name      string
		status    int
		body      string
		kind      ErrorKind
		retryable bool
		says      string
	}{
		{"OpenAI key", 401, `{"error":{"message":"Incorrect API key provided: sk-***","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, ErrAuth, false, "Incorrect API key"},
		{"OpenAI model", 404, `{"error":{"message":"The model 'x' does not exist","type":"invalid_request_error","code":"model_not_found"}}`, ErrNotFound, false, "does not exist"},
		{"OpenAI length", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`, ErrContext, false, "8192"},
		{"OpenAI quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, ErrQuota, false, "quota"},
		{"OpenAI rate", 429, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, ErrRate, true, "Rate limit"},
		{"OpenAI slow down", 503, `{"error":{"message":"slow down","code":"slow_down"}}`, ErrOverloaded, true, "slow down"},
		{"OpenAI filter", 400, `{"error":{"message":"flagged","code":"content_policy_violation"}}`, ErrFilter, false, "flagged"},
		{"Responses inside a stream", 0, `{"type":"response.failed","response":{"error":{"code":"server_error","message":"sorry"}}}`, ErrServer, true, "sorry"},
		{"Anthropic overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_9"}`, ErrOverloaded, true, "Overloaded"},
		{"Anthropic length", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, ErrContext, false, "too long"},
		{"Anthropic credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API"}}`, ErrQuota, false, "credit"},
		{"Anthropic model", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, ErrNotFound, false, "model: x"},
		{"Anthropic size", 413, `{"type":"error","error":{"type":"request_too_large","message":"too large"}}`, ErrContext, false, "too large"},
		{"Anthropic inside a stream", 0, `{"type":"error","error":{"type":"rate_limit_error","message":"slower"}}`, ErrRate, true, "slower"},
		{"Anthropic permission", 403, `{"type":"error","error":{"type":"permission_error","message":"no access"}}`, ErrAuth, false, "no access"},
		{"Google list", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, ErrAuth, false, "not valid"},
		{"Google rate", 429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"20s"}]}}`, ErrRate, true, "quota"},
		{"Google inside a stream", 0, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`, ErrOverloaded, true, "overloaded"},
		{"OpenRouter inside a stream", 0, `{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"the real reason\"}}","provider_name":"x"}}}`, ErrServer, true, "the real reason"},
		{"OpenRouter credits", 402, `{"error":{"code":402,"message":"Insufficient credits"}}`, ErrQuota, false, "credits"},
		{"OpenRouter model", 400, `{"error":{"code":400,"message":"x/y is not a valid model ID"}}`, ErrNotFound, false, "model ID"},
		{"Mistral", 422, `{"object":"error","message":"bad tool","type":"invalid_request_error","code":null}`, ErrRequest, false, "bad tool"},
		{"DeepSeek balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, ErrQuota, false, "Balance"},
		{"Ollama", 404, `{"error":"model \"x\" not found, try pulling it first"}`, ErrNotFound, false, "pulling"},
		{"llama.cpp length", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, ErrContext, false, "context size"},
		{"FastAPI", 422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, ErrRequest, false, "field required"},
		{"detail as text", 404, `{"detail":"Not Found"}`, ErrNotFound, false, "Not Found"},
		{"plain text", 502, "upstream\r\n  went\taway\x1b[31m", ErrServer, true, "upstream went away"},
		{"web page", 503, "<!DOCTYPE html><HTML><head><TITLE>\n Down for\n maintenance</TITLE></head><body>x</body>", ErrOverloaded, true, "a web page: Down for maintenance"},
		{"web page without a title", 500, "<html><body><p>It <b>broke</b></p></body></html>", ErrServer, true, "It broke"},
		{"nothing", 500, "", ErrServer, true, "500 Internal Server Error"},
		{"nothing with an odd status", 599, " ", ErrServer, true, "599"},
		{"a number", 500, "12", ErrServer, true, "12"},
		{"an empty list", 500, "[]", ErrServer, true, "[]"},
		{"null", 500, "null", ErrServer, true, "null"},
		{"broken JSON", 400, `{"error":{"mess`, ErrRequest, false, `{"error":`},
		{"a teapot", 418, "short and stout", ErrRequest, false, "stout"},
		{"a proxy that wants a password", 407, "", ErrConnect, false, "407"},
		{"redirect", 301, "", ErrRequest, false, "301"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e *Error
			if c.status == 0 {
				e = testEndpoint.streamError([]byte(c.body))
			} else {
				e = testEndpoint.statusError(c.status, http.Header{}, []byte(c.body))
			}
			if e.Kind != c.kind || e.Retryable != c.retryable || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %+v", e)
			}
			if strings.ContainsAny(e.Message, "\n\r\t\x1b") {
				t.Errorf("message %q is no line of plain text", e.Message)
			}
			if c.name == "Google rate" && e.RetryAfter != 20*time.Second || c.name == "Anthropic overloaded" && e.RequestID != "req_9" {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	e := testEndpoint.statusError(500, http.Header{"X-Request-Id": {strings.Repeat("ü", 999)}}, []byte(strings.Repeat("ü🙂", 99999)))
	if len(e.Message) > maxMessage+len("…") || !utf8.ValidString(e.Message) || len(e.RequestID) > 128+len("…") {
		t.Errorf("%d bytes, id %d bytes", len(e.Message), len(e.RequestID))
	}
}

func TestKeysAreMaskedWholeOrCut(t *testing.T) {
	for _, said := range []string{
		"bad key " + keyOfTests, "bad key '" + keyOfTests[:16] + "...'", keyOfTests + keyOfTests, `{"error":{"message":"` + keyOfTests + `"}}`,
		strings.Repeat("x", maxMessage-5) + keyOfTests, `{"error":{"code":"` + keyOfTests + `","message":"m"},"request_id":"` + keyOfTests + `"}`,
		"<title>" + keyOfTests + "</title>",
	} {
		e := testEndpoint.statusError(401, http.Header{"X-Request-Id": {keyOfTests}}, []byte(said))
		holdsNoKey(t, e)
		if text := fmt.Sprintf("%+v", *e); strings.Contains(text, keyOfTests[:12]) {
			t.Errorf("%q: %s", said, text)
		}
	}
}

func TestHowLongAServerWantsUsToWait(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name   string
		header map[string]string
		want   time.Duration
	}{
		{"nothing", nil, 0},
		{"seconds", map[string]string{"Retry-After": "7"}, 7 * time.Second},
		{"fraction", map[string]string{"Retry-After": " 1.5 "}, 1500 * time.Millisecond},
		{"milliseconds win", map[string]string{"Retry-After": "7", "retry-after-ms": "250"}, 250 * time.Millisecond},
		{"date", map[string]string{"Retry-After": "Fri, 02 Jan 2026 03:04:35 GMT"}, 30 * time.Second},
		{"date by the server's clock", map[string]string{"Retry-After": "Fri, 02 Jan 2026 13:00:10 GMT", "Date": "Fri, 02 Jan 2026 13:00:00 GMT"}, 10 * time.Second},
		{"past date", map[string]string{"Retry-After": "Fri, 02 Jan 2026 03:00:00 GMT"}, 0},
		{"negative", map[string]string{"Retry-After": "-5"}, 0},
		{"nonsense", map[string]string{"Retry-After": "soon", "retry-after-ms": "NaN"}, 0},
		{"endless", map[string]string{"Retry-After": "1e300"}, maxServerWait},
		{"infinite", map[string]string{"Retry-After": "Inf"}, maxServerWait},
	} {
		h := http.Header{}
		for k, v := range c.header {
			h.Set(k, v)
		}
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for text, want := range map[string]time.Duration{
		"Please try again in 11.054s. Visit": 11054 * time.Millisecond, "Try again in 350ms.": 350 * time.Millisecond,
		"try again in 1m30s": 90 * time.Second, "try again in a while": 0, "try again in ": 0, "": 0,
	} {
		if got := (complaint{message: text}).wait(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestServerThatKnowsBetterWhetherToRetry(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		should string
		want   bool
	}{
		{500, "", "false", false}, {400, "", "true", true}, {401, "", "true", false},
		{429, `{"error":{"code":"insufficient_quota"}}`, "true", false}, {500, "", "perhaps", true},
	} {
		h := http.Header{}
		h.Set("x-should-retry", c.should)
		if e := testEndpoint.statusError(c.status, h, []byte(c.body)); e.Retryable != c.want {
			t.Errorf("%d %s: %+v", c.status, c.should, e)
		}
	}
}

func TestFaultsNameTheirClassAndTheirCure(t *testing.T) {
	body := func(code, message string) string {
		return fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, code, message)
	}
	for _, c := range []struct {
		status int
		body   string
		exit   fault.Exit
		code   string
		fix    string
	}{
		{401, body("", "no"), fault.Auth, "auth", "ACME_KEY"},
		{403, body("", "no"), fault.Auth, "auth", "ACME_KEY"},
		{404, body("model_not_found", "The model x does not exist"), fault.Config, "not_found", "the model's name"},
		{404, "<html><title>Not Found</title></html>", fault.Provider, "not_found", "base_url of the provider acme, which is https://acme.example/v1"},
		{402, body("", "pay"), fault.Provider, "quota", "billing"},
		{429, body("", "slow"), fault.Provider, "rate_limit", "fewer agents"},
		{500, "", fault.Provider, "server_error", ""},
		{400, body("", "bad"), fault.Provider, "bad_request", ""},
		{400, body("context_length_exceeded", "long"), fault.Model, "context_length", "larger context window"},
		{400, body("content_filter", "filtered"), fault.Model, "content_filter", ""},
	} {
		e := testEndpoint.statusError(c.status, http.Header{"X-Request-Id": {"req-7"}}, []byte(c.body))
		f := Fault(fmt.Errorf("turn 3: %w", e), "acme/x")
		if f.Exit != c.exit || f.Code != c.code || !strings.Contains(f.Fix, c.fix) || f.Status != c.status || f.Retryable != e.Retryable {
			t.Errorf("%d: got %+v", c.status, f)
		}
		if text := f.Text(); !strings.Contains(text, `"acme/x"`) || !strings.Contains(text, "req-7") || strings.Contains(text, "hidden") {
			t.Errorf("%d: %s", c.status, text)
		}
	}
	for kind, exit := range map[ErrorKind]fault.Exit{
		ErrScriptEnded: fault.Incomplete, ErrScriptMismatch: fault.Failed, ErrCancelled: fault.Interrupted,
		ErrMalformed: fault.Provider, ErrTooLarge: fault.Provider, ErrIdle: fault.Provider,
	} {
		if f := Fault(&Error{Kind: kind}, "x"); f.Exit != exit {
			t.Errorf("%s: exit %d, want %d", kind, f.Exit, exit)
		}
	}
	known := &fault.Error{Code: "c", Exit: fault.Session}
	if Fault(known, "x") != known || Fault(nil, "x") != nil {
		t.Error("another error changed its class")
	}
	anonymous := endpoint{Name: "acme", BaseURL: "http://x"}
	if e := anonymous.statusError(401, http.Header{}, nil); !strings.Contains(e.Fix, "api_key_env of the provider acme") {
		t.Errorf("fix %q", e.Fix)
	}
	ollama := endpoint{Name: "ollama", BaseURL: "http://x"}
	if e := ollama.statusError(404, http.Header{}, []byte(`{"error":"model not found"}`)); !strings.Contains(e.Fix, "ollama pull") {
		t.Errorf("fix %q", e.Fix)
	}
}

func TestFailureKeepsItsCauseWithoutItsSecrets(t *testing.T) {
	cause := fmt.Errorf("read tcp with %s: %w", keyOfTests, context.DeadlineExceeded)
	e := testEndpoint.failure(context.Background(), cause, true)
	if e.Kind != ErrCut || !e.Retryable || !errors.Is(e, context.DeadlineExceeded) {
		t.Errorf("got %+v", e)
	}
	if strings.Contains(e.Error()+e.Err.Error(), keyOfTests) {
		t.Errorf("the key is in %v", e.Err)
	}
}

func FuzzErrorBody(f *testing.F) {
	for _, s := range []string{
		`{"error":{"message":"m","code":1,"type":"t"}}`, `[{"error":{}}]`, "<html><title>x</title>", "<TİTLE>x</TİTLE>", `{"detail":[{"msg":"m"}]}`, "\x1b[2J", `{"error":{"metadata":{"raw":"{}"}}}`,
	} {
		f.Add([]byte(s), 500)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		for _, e := range []*Error{testEndpoint.statusError(status, http.Header{}, body), testEndpoint.streamError(body)} {
			if e.Kind == "" || e.Message == "" || !utf8.ValidString(e.Message) || len(e.Message) > maxMessage+len("…") || strings.ContainsAny(e.Message, "\n\x1b") {
				t.Fatalf("got %+v", e)
			}
		}
	})
}
