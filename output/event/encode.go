package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// AppendJSON appends the event as one flat JSON object without a newline: the
// envelope's keys first, then the body's. The line is valid UTF-8 whatever the
// event holds: bytes that are no text become U+FFFD, control characters, U+2028
// and U+2029 are escaped, and raw JSON inside the event is made strict (no duplicate keys, no
// line breaks). It fails only on a number that JSON cannot express and on a
// body that is not an object; dst is then returned as it came.
func AppendJSON(dst []byte, e Event) ([]byte, error) {
	if e.Body == nil {
		return dst, fmt.Errorf("encode event %d: it has no body", e.Seq)
	}
	line := appendEnvelope(dst, e)
	line, err := appendBody(line, e.Body)
	if err != nil {
		return dst, fmt.Errorf("encode %s event: %w", e.Body.Type(), err)
	}
	return escapeControls(append(line, '}'), len(dst)), nil
}

// escapeControls escapes DEL and the control characters U+0080 to U+009F in
// line[from:]. JSON lets them stand as they are, but a terminal that shows the
// line would obey them. They can only be inside strings.
func escapeControls(line []byte, from int) []byte {
	if bytes.IndexByte(line[from:], 0x7f) < 0 && bytes.IndexByte(line[from:], 0xc2) < 0 {
		return line
	}
	var out []byte
	copied := from
	for i := from; i < len(line); i++ {
		size := 0
		switch {
		case line[i] == 0x7f:
			size = 1
		case line[i] == 0xc2 && i+1 < len(line) && line[i+1] <= 0x9f:
			size = 2
		default:
			continue
		}
		c := line[i+size-1]
		out = append(out, line[copied:i]...)
		out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		i += size - 1
		copied = i + 1
	}
	if copied == from {
		return line
	}
	out = append(out, line[copied:]...)
	return append(line[:from], out...)
}

// envelopeKeys are the names that belong to the envelope; no body may use one.
var envelopeKeys = []string{
	"v", "seq", "ts", "type", "run_id", "session_id", "parent_session_id",
	"agent", "turn", "item_id", "replayed", "ext",
}

func appendEnvelope(dst []byte, e Event) []byte {
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, Version, 10)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(dst, `,"ts":"`...)
	dst = appendTime(dst, e.Time)
	dst = append(dst, `","type":`...)
	dst = appendString(dst, e.Body.Type())
	dst = appendMember(dst, `,"run_id":`, e.RunID)
	dst = appendOptional(dst, `,"session_id":`, e.SessionID)
	dst = appendOptional(dst, `,"parent_session_id":`, e.ParentSessionID)
	dst = appendOptional(dst, `,"agent":`, e.Agent)
	if e.Turn != 0 {
		dst = append(dst, `,"turn":`...)
		dst = strconv.AppendInt(dst, int64(e.Turn), 10)
	}
	dst = appendOptional(dst, `,"item_id":`, e.ItemID)
	if e.Replayed {
		dst = append(dst, `,"replayed":true`...)
	}
	if len(e.Ext) > 0 {
		dst = append(dst, `,"ext":`...)
		dst = append(dst, strictRaw(e.Ext)...)
	}
	return dst
}

// appendTime writes RFC 3339 in UTC with milliseconds. It is written by hand
// because it is a part of every line.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = appendDigits(dst, min(max(year, 0), 9999), 4)
	dst = append(dst, '-')
	dst = appendDigits(dst, int(month), 2)
	dst = append(dst, '-')
	dst = appendDigits(dst, day, 2)
	dst = append(dst, 'T')
	dst = appendDigits(dst, hour, 2)
	dst = append(dst, ':')
	dst = appendDigits(dst, minute, 2)
	dst = append(dst, ':')
	dst = appendDigits(dst, second, 2)
	dst = append(dst, '.')
	dst = appendDigits(dst, t.Nanosecond()/int(time.Millisecond), 3)
	return append(dst, 'Z')
}

func appendDigits(dst []byte, n, width int) []byte {
	var digits [4]byte
	for i := width - 1; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, digits[:width]...)
}

// appendBody writes the members of a body, each with a leading comma. The
// bodies of which a run has thousands are written by hand; a test holds them
// to what encoding/json would write.
func appendBody(dst []byte, b Body) ([]byte, error) {
	switch b := b.(type) {
	case MessageDeltaEvent:
		return appendText(dst, "message_id", b.MessageID, b.Delta), nil
	case ReasoningDeltaEvent:
		return appendText(dst, "message_id", b.MessageID, b.Delta), nil
	case ToolCallArgsDeltaEvent:
		return appendText(dst, "tool_call_id", b.ToolCallID, b.Delta), nil
	case TerminalAppendStringEvent:
		dst = appendMember(dst, `,"tool_call_id":`, b.ToolCallID)
		dst = appendMember(dst, `,"terminal_id":`, b.TerminalID)
		dst = appendMember(dst, `,"delta":`, b.Delta)
		dst = appendOptional(dst, `,"stream":`, string(b.Stream))
		dst = appendOptional(dst, `,"encoding":`, string(b.Encoding))
		if b.DroppedBytes != 0 {
			dst = append(dst, `,"dropped_bytes":`...)
			dst = strconv.AppendInt(dst, b.DroppedBytes, 10)
		}
		return dst, nil
	case ToolStatusEvent:
		if b.TimeoutSec != float64(int64(b.TimeoutSec)) {
			return appendAny(dst, b)
		}
		dst = appendMember(dst, `,"tool_call_id":`, b.ToolCallID)
		dst = appendMember(dst, `,"tool_name":`, b.ToolName)
		dst = appendMember(dst, `,"status":`, string(b.Status))
		if b.TimeoutSec != 0 {
			dst = append(dst, `,"timeout_sec":`...)
			dst = strconv.AppendInt(dst, int64(b.TimeoutSec), 10)
		}
		return appendOptional(dst, `,"progress":`, b.Progress), nil
	case Unknown:
		return appendUnknown(dst, b.Raw)
	}
	return appendAny(dst, strictBody(b))
}

func appendText(dst []byte, idKey, id, delta string) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, idKey...)
	dst = append(dst, `":`...)
	dst = appendString(dst, id)
	return appendMember(dst, `,"delta":`, delta)
}

func appendMember(dst []byte, key, value string) []byte {
	return appendString(append(dst, key...), value)
}

func appendOptional(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return appendMember(dst, key, value)
}

// strictBody prepares what encoding/json would write in a way that the schema
// or a strict reader refuses: nil lists that are required, and raw JSON.
func strictBody(b Body) Body {
	switch b := b.(type) {
	case RunStartedEvent:
		b.Capabilities = notNil(b.Capabilities)
		b.Grants = slices.Clone(b.Grants)
		for i := range b.Grants {
			b.Grants[i].Rule = strictRaw(b.Grants[i].Rule)
		}
		return b
	case RunFinishedEvent:
		b.Denials = notNil(b.Denials)
		b.StructuredOutput = strictRaw(b.StructuredOutput)
		return b
	case PlanUpdatedEvent:
		b.Items = notNil(b.Items)
		return b
	case ToolCallEvent:
		b.Args = strictRaw(b.Args)
		return b
	case ToolApprovalRequestEvent:
		b.Args = strictRaw(b.Args)
		b.SuggestedRules = strictRaws(b.SuggestedRules)
		return b
	case ToolApprovalResponseEvent:
		b.Args = strictRaw(b.Args)
		return b
	case ToolResultEvent:
		b.Structured = strictRaw(b.Structured)
		return b
	case JobItemFinishedEvent:
		b.Result = strictRaw(b.Result)
		return b
	}
	return b
}

func strictRaws(raws []json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	for _, raw := range raws {
		out = append(out, strictRaw(raw))
	}
	return out
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// encoder is a reusable buffer with the JSON encoder that writes to it.
type encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false)
	return e
}}

// keptBuffer is the largest buffer worth keeping: a rare huge line should not
// hold its memory for the rest of the run.
const keptBuffer = 128 << 10

func appendAny(dst []byte, v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.buf.Reset()
	err := e.enc.Encode(v)
	if err == nil {
		dst, err = appendMembers(dst, e.buf.Bytes())
	}
	if e.buf.Cap() <= keptBuffer {
		encoders.Put(e)
	}
	return dst, err
}

// appendMembers writes what is between the braces of an encoded object.
func appendMembers(dst, object []byte) ([]byte, error) {
	object = bytes.TrimSpace(object)
	if len(object) < 2 || object[0] != '{' {
		return dst, fmt.Errorf("the body is not an object")
	}
	if len(object) == 2 {
		return dst, nil
	}
	return append(append(dst, ','), object[1:len(object)-1]...), nil
}

// appendUnknown writes the members of an event that was read from a newer
// stream, without the envelope, which the event has apart.
func appendUnknown(dst []byte, raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return dst, nil
	}
	raw = strictRaw(raw)
	err := eachMember(raw, func(key string, value []byte) {
		for _, k := range envelopeKeys {
			if k == key {
				return
			}
		}
		dst = appendString(append(dst, ','), key)
		dst = append(append(dst, ':'), value...)
	})
	return dst, err
}

const hexDigits = "0123456789abcdef"

// plain tells which ASCII bytes stand for themselves inside a JSON string.
func plain(c byte) bool { return c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf }

// appendString writes s as a JSON string, the way encoding/json does without
// HTML escaping, but for the escapes of invalid bytes.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain(c) {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
			dst = append(dst, s[start:i]...)
			switch r {
			case '\u2028':
				dst = append(dst, `\u2028`...)
			case '\u2029':
				dst = append(dst, `\u2029`...)
			default:
				dst = append(dst, "\uFFFD"...)
			}
			start = i + size
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
