package model

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// What servers say when they refuse, put into one vocabulary: the status and
// whatever of type, code and message the body holds become an Error.
//
// Worth trying again are 408, 409, 425, 429 (but not a spent quota), every 5xx
// with 529, and whatever breaks on the way. A server that sends x-should-retry
// knows better, unless it is a matter of money, keys or length.

const (
	// maxErrorBody bounds what is read of a body that explains a failure.
	maxErrorBody = 64 << 10
	// maxMessage bounds a server's message, in bytes.
	maxMessage = 500
	// maxServerWait bounds what is believed of a server's wish to wait.
	maxServerWait = 24 * time.Hour
)

// httpError reads a response that is no success and closes its body.
func (p *endpoint) httpError(resp *http.Response) *Error {
	defer resp.Body.Close()
	// A body that breaks explains less; the status is known all the same.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return p.statusError(resp.StatusCode, resp.Header, body)
}

// statusError returns the error that status, headers and body tell of.
func (p *endpoint) statusError(status int, h http.Header, body []byte) *Error {
	said := readComplaint(body)
	e := p.complaintError(status, said)
	if id := requestID(h); id != "" {
		e.RequestID = p.clean(id, 128)
	}
	if wait := retryAfter(h, time.Now()); wait > 0 {
		e.RetryAfter = wait
	}
	switch h.Get("x-should-retry") {
	case "true":
		if e.Kind == ErrRequest {
			// Then it is not the request that is at fault.
			e.Kind, e.Retryable = ErrServer, true
		}
	case "false":
		e.Retryable = false
	}
	return e
}

// streamError returns the error that an event inside a 200 response tells of.
func (p *endpoint) streamError(data []byte) *Error {
	said := readComplaint(data)
	status, err := strconv.Atoi(said.code)
	if err != nil || status < 400 || status > 599 {
		status = 0
	}
	return p.complaintError(status, said)
}

func (p *endpoint) complaintError(status int, said complaint) *Error {
	e := &Error{Status: status, Kind: said.kind(status), Message: p.clean(said.message, maxMessage), RetryAfter: said.wait()}
	if e.Message == "" && status != 0 {
		e.Message = strings.TrimSpace("the server said nothing but " + strconv.Itoa(status) + " " + http.StatusText(status))
	}
	if e.Message == "" {
		e.Message = "the server reported an error and said nothing about it"
	}
	e.RequestID = p.clean(said.requestID, 128)
	switch e.Kind {
	case ErrRate, ErrOverloaded, ErrServer:
		e.Retryable = true
	}
	e.Fix = p.fix(e)
	return e
}

// complaint is what the body of an error says.
type complaint struct {
	message string
	// code, typ are lower case; which server puts what where differs.
	code, typ string
	requestID string
	// delay is a wait that the body asks for, as in "20s".
	delay string
}

// readComplaint reads a body in any of the common shapes: OpenAI's and
// Anthropic's objects, Google's in a list, FastAPI's detail, plain text, or a
// web page of something in between.
func readComplaint(body []byte) complaint {
	text := strings.TrimSpace(strings.TrimPrefix(string(body), "\ufeff"))
	raw := json.RawMessage(text)
	if list := []json.RawMessage{}; strings.HasPrefix(text, "[") && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(raw, &outer) != nil || outer == nil {
		return complaint{message: plainText(text)}
	}
	c := complaint{requestID: jsonText(outer["request_id"])}
	inner := outer
	for _, key := range []string{"error", "response"} {
		// A failed response of the Responses API wraps its error once more.
		var deeper map[string]json.RawMessage
		if json.Unmarshal(inner[key], &deeper) == nil && deeper != nil {
			inner = deeper
			if json.Unmarshal(inner["error"], &deeper) == nil && deeper["message"] != nil {
				inner = deeper
			}
			break
		}
	}
	c.message = firstText(inner, "message", "error", "detail", "error_description", "msg", "title")
	c.code = strings.ToLower(firstText(inner, "code", "status"))
	c.typ = strings.ToLower(jsonText(inner["type"]))
	if status := strings.ToLower(jsonText(inner["status"])); c.typ == "" {
		c.typ = status
	}
	c.delay = retryDelay(inner["details"])
	if meta := struct {
		Raw json.RawMessage `json:"raw"`
	}{}; json.Unmarshal(inner["metadata"], &meta) == nil {
		// A router repeats what the server behind it said.
		if behind := jsonText(meta.Raw); behind != "" && !strings.Contains(c.message, behind) {
			c.message += ": " + readComplaint([]byte(behind)).message
		}
	}
	if c.message == "" {
		c.message = plainText(text)
	}
	return c
}

// firstText returns the first of the values that says something.
func firstText(m map[string]json.RawMessage, keys ...string) string {
	for _, k := range keys {
		if s := jsonText(m[k]); s != "" {
			return s
		}
	}
	return ""
}

// jsonText returns a string or number as text, and of a list of objects the
// first message.
func jsonText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.TrimSpace(s)
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return firstText(list[0], "msg", "message")
	}
	return ""
}

// retryDelay finds Google's RetryInfo.
func retryDelay(details json.RawMessage) string {
	var list []struct {
		RetryDelay string `json:"retryDelay"`
	}
	if json.Unmarshal(details, &list) != nil {
		return ""
	}
	for _, d := range list {
		if d.RetryDelay != "" {
			return d.RetryDelay
		}
	}
	return ""
}

// plainText makes a message of a body that is no JSON.
func plainText(text string) string {
	if !strings.HasPrefix(text, "<") {
		return text
	}
	lower := strings.ToLower(text)
	if len(lower) != len(text) {
		// Lower case changed the length of some letter: offsets would lie.
		return "a web page: " + stripTags(text)
	}
	for _, tag := range []string{"title", "h1"} {
		at := strings.Index(lower, "<"+tag)
		if at < 0 {
			continue
		}
		open := strings.IndexByte(lower[at:], '>')
		end := strings.Index(lower[at:], "</"+tag)
		if open > 0 && end > open {
			if title := strings.TrimSpace(stripTags(text[at+open+1 : at+end])); title != "" {
				return "a web page: " + title
			}
		}
	}
	return "a web page: " + stripTags(text)
}

func stripTags(text string) string {
	var b strings.Builder
	inside := false
	for _, r := range text {
		switch {
		case r == '<':
			inside = true
		case r == '>':
			inside = false
			b.WriteByte(' ')
		case !inside:
			b.WriteRune(r)
		}
		if b.Len() > 4*maxMessage {
			break
		}
	}
	return b.String()
}

// clean makes one short line of what a server said, without secrets and
// without anything that a terminal would obey.
func (p *endpoint) clean(s string, most int) string {
	s = p.mask(s)
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\ufffd"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	}), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// secretPrefix is how much of a secret gives it away: servers shorten the keys
// that they repeat.
const secretPrefix = 12

// mask replaces the secrets, whole or cut short.
func (p *endpoint) mask(s string) string {
	for _, secret := range p.secrets {
		s = strings.ReplaceAll(s, secret, "***")
		if len(secret) < 2*secretPrefix {
			continue
		}
		for {
			at := strings.Index(s, secret[:secretPrefix])
			if at < 0 {
				break
			}
			end := at + secretPrefix
			for end < len(s) && strings.IndexByte(" \t\r\n\"'<>,;", s[end]) < 0 {
				end++
			}
			s = s[:at] + "***" + s[end:]
		}
	}
	return s
}

func requestID(h http.Header) string {
	for _, name := range []string{"x-request-id", "request-id", "x-amzn-requestid", "cf-ray"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// retryAfter reads how long the server asks to wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 {
		return serverWait(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return serverWait(s)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		// The server's own clock: ours may be wrong.
		now = date
	}
	return serverWait(at.Sub(now).Seconds())
}

// serverWait makes a duration of seconds that a stranger sent.
func serverWait(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, maxServerWait.Seconds()) * float64(time.Second))
}

// wait returns the wait that the body asks for, in a field of its own or in
// words such as "Please try again in 1.5s."
func (c complaint) wait() time.Duration {
	text := c.delay
	if text == "" {
		_, text, _ = strings.Cut(strings.ToLower(c.message), "try again in ")
	}
	n := 0
	for n < len(text) && strings.IndexByte("0123456789.hms", text[n]) >= 0 {
		n++
	}
	d, err := time.ParseDuration(strings.TrimRight(text[:n], "."))
	if err != nil {
		return 0
	}
	return serverWait(d.Seconds())
}
