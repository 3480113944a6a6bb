package event

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// Redactor masks secrets in events before anybody sees them, and in texts that
// go elsewhere. A secret becomes [secret:NAME], a token of a known shape
// [secret:SHAPE].
//
// Deltas are masked across their borders: the end of a chunk that may be the
// beginning of a secret is held back until the next chunk of the series tells,
// or until the series ends. The joined deltas are the masked whole.
//
// String and Bytes may be used concurrently; Body is for the one owner of the
// stream, the Log. A nil Redactor masks nothing.
type Redactor struct {
	masker *masker
	count  atomic.Int64
	series map[seriesKey]*series
	opened int
	routed []routed
	// cuts says that the texts of the present body may be cut ones.
	cuts bool
}

// NewRedactor returns a redactor for secrets, value by name. Space around a
// value is ignored. A value is masked as it is, inside JSON, escaped as in
// addresses, and inside base64, wrapped or not. Values shorter than 6 bytes are not masked, nor are numbers
// and words of settings (enabled, default, …) shorter than 8: they occur in
// ordinary text, which would be destroyed, and the holes would tell the value.
func NewRedactor(secrets map[string]string) *Redactor {
	return &Redactor{masker: newMasker(secrets), series: map[seriesKey]*series{}}
}

// Count is how many secrets have been masked in events, the same one again in
// another event included; a nil Redactor has masked none.
func (r *Redactor) Count() int64 {
	if r == nil {
		return 0
	}
	return r.count.Load()
}

// String returns s with its secrets masked, also those of which a cut has left a
// part. It does not change Count.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	masked, _ := r.masker.mask(s)
	masked, _ = r.masker.maskCuts(masked)
	return masked
}

// Bytes returns b with its secrets masked; b itself if there are none. It does
// not change Count.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil {
		return b
	}
	s := string(b)
	masked, n := r.masker.mask(s)
	if n == 0 {
		return b
	}
	return []byte(masked)
}

// Body returns the bodies to emit in place of b: text that was held back
// earlier and may now be released, then b itself, masked. The list is empty
// when all of a delta is held back, and valid until the next call.
func (r *Redactor) Body(b Body) []Body {
	if r == nil {
		return []Body{b}
	}
	var out []Body
	for _, x := range r.route(Origin{}, b) {
		out = append(out, x.body)
	}
	return out
}

// routed is a body with whose it is: released text belongs to the origin of
// its series, which may be another than that of the event that released it.
type routed struct {
	origin Origin
	body   Body
}

// seriesKey names a series of deltas. The streams of a terminal are series of
// their own, because a secret does not continue in the other one.
type seriesKey struct {
	session, kind, id string
	stream            Stream
}

// The kinds of series, in the order in which they are released.
const (
	seriesReasoning = "reasoning"
	seriesMessage   = "text"
	seriesArgs      = "args"
	seriesTerminal  = "terminal"
)

type series struct {
	state  maskState
	origin Origin
	// last is the latest delta, the pattern for what is released at the end.
	last Body
	// order is when the series began.
	order int
}

func (r *Redactor) route(o Origin, b Body) []routed {
	if b == nil {
		return nil
	}
	r.routed = r.routed[:0]
	switch b := b.(type) {
	case MessageDeltaEvent:
		b.MessageID = r.text(b.MessageID)
		r.delta(seriesKey{session: o.SessionID, kind: seriesMessage, id: b.MessageID}, o, b)
	case ReasoningDeltaEvent:
		b.MessageID = r.text(b.MessageID)
		r.delta(seriesKey{session: o.SessionID, kind: seriesReasoning, id: b.MessageID}, o, b)
	case ToolCallArgsDeltaEvent:
		b.ToolCallID = r.text(b.ToolCallID)
		r.delta(seriesKey{session: o.SessionID, kind: seriesArgs, id: b.ToolCallID}, o, b)
	case TerminalAppendStringEvent:
		b.ToolCallID, b.TerminalID = r.text(b.ToolCallID), r.text(b.TerminalID)
		b.Stream, b.Encoding = Stream(r.text(string(b.Stream))), Encoding(r.text(string(b.Encoding)))
		r.delta(seriesKey{session: o.SessionID, kind: seriesTerminal, id: b.TerminalID, stream: b.Stream}, o, b)
	default:
		masked := r.whole(b)
		r.release(o, masked)
		r.routed = append(r.routed, routed{o, masked})
	}
	return r.routed
}

// delta masks the next chunk of a series.
func (r *Redactor) delta(key seriesKey, o Origin, b Body) {
	s := r.series[key]
	if s == nil {
		r.opened++
		s = &series{order: r.opened}
		r.series[key] = s
	}
	s.origin, s.last = o, b
	if droppedOf(b) > 0 && s.state.held != "" {
		r.closeGap(s)
	}
	in := chunkOf(b)
	out, n := r.masker.push(&s.state, in, false)
	r.count.Add(n)
	if out == "" && in != "" && droppedOf(b) == 0 {
		return
	}
	if out != in {
		b = withChunk(b, out)
	}
	r.routed = append(r.routed, routed{o, b})
}

// closeGap releases what a series holds before a gap: its beginning of a secret
// will not be completed.
func (r *Redactor) closeGap(s *series) {
	rest, n := r.masker.push(&s.state, "", true)
	if part, mark := r.masker.head(rest); part > 0 {
		rest, n = rest[:len(rest)-part]+mark, n+1
	}
	r.count.Add(n)
	if rest != "" {
		r.routed = append(r.routed, routed{s.origin, withoutDropped(withChunk(s.last, rest))})
	}
}

// release ends the series that b ends, and emits what they still hold.
func (r *Redactor) release(o Origin, b Body) {
	if len(r.series) == 0 {
		return
	}
	var ends func(k seriesKey) bool
	switch b := b.(type) {
	case MessageEvent:
		ends = func(k seriesKey) bool { return k.kind == seriesMessage && k.id == b.MessageID }
	case ReasoningEvent:
		ends = func(k seriesKey) bool { return k.kind == seriesReasoning && k.id == b.MessageID }
	case ToolCallEvent:
		ends = func(k seriesKey) bool { return k.kind == seriesArgs && k.id == b.ToolCallID }
	case ToolResultEvent:
		ends = func(k seriesKey) bool { return k.kind == seriesArgs && k.id == b.ToolCallID }
	case ToolIncompleteEvent:
		ends = func(k seriesKey) bool { return k.kind == seriesArgs && k.id == b.ToolCallID }
	case TerminalCompletedEvent:
		ends = func(k seriesKey) bool { return k.kind == seriesTerminal && k.id == b.TerminalID }
	case TurnFinishedEvent, SessionFinishedEvent:
		// A terminal may outlive both.
		ends = func(k seriesKey) bool { return k.kind != seriesTerminal }
	case RunFinishedEvent:
		r.releaseAll(func(seriesKey) bool { return true })
		return
	default:
		return
	}
	r.releaseAll(func(k seriesKey) bool { return k.session == o.SessionID && ends(k) })
}

func (r *Redactor) releaseAll(ends func(seriesKey) bool) {
	var ended []*series
	for k, s := range r.series {
		if ends(k) {
			ended = append(ended, s)
			delete(r.series, k)
		}
	}
	slices.SortFunc(ended, func(a, b *series) int { return a.order - b.order })
	for _, s := range ended {
		rest, n := r.masker.push(&s.state, "", true)
		r.count.Add(n)
		if rest != "" {
			r.routed = append(r.routed, routed{s.origin, withoutDropped(withChunk(s.last, rest))})
		}
	}
}

// chunkOf returns the bytes that a delta adds.
func chunkOf(b Body) string {
	switch b := b.(type) {
	case MessageDeltaEvent:
		return b.Delta
	case ReasoningDeltaEvent:
		return b.Delta
	case ToolCallArgsDeltaEvent:
		return b.Delta
	case TerminalAppendStringEvent:
		if b.Encoding == "base64" {
			if raw, err := base64.StdEncoding.DecodeString(b.Delta); err == nil {
				return string(raw)
			}
		}
		return b.Delta
	}
	return ""
}

func droppedOf(b Body) int64 {
	if b, ok := b.(TerminalAppendStringEvent); ok {
		return b.DroppedBytes
	}
	return 0
}

// withoutDropped returns the delta without its count of lost bytes, which has
// been told already.
func withoutDropped(b Body) Body {
	if b, ok := b.(TerminalAppendStringEvent); ok {
		b.DroppedBytes = 0
		return b
	}
	return b
}

// withChunk returns the delta with other bytes.
func withChunk(b Body, chunk string) Body {
	switch b := b.(type) {
	case MessageDeltaEvent:
		b.Delta = chunk
		return b
	case ReasoningDeltaEvent:
		b.Delta = chunk
		return b
	case ToolCallArgsDeltaEvent:
		b.Delta = chunk
		return b
	case TerminalAppendStringEvent:
		b.Delta, b.Encoding = chunk, ""
		if !utf8.ValidString(chunk) {
			b.Delta, b.Encoding = base64.StdEncoding.EncodeToString([]byte(chunk)), "base64"
		}
		return b
	}
	return b
}

// text masks a whole text of an event.
func (r *Redactor) text(s string) string {
	masked, n := r.masker.mask(s)
	if r.cuts {
		var parts int64
		masked, parts = r.masker.maskCuts(masked)
		n += parts
	}
	r.count.Add(n)
	return masked
}

// has tells whether a text of the present body is to be changed.
func (r *Redactor) has(s string) bool {
	if r.masker.has(s) {
		return true
	}
	if !r.cuts {
		return false
	}
	_, parts := r.masker.maskCuts(s)
	return parts > 0
}

// mayBeCut tells whether the texts of a body may be cut ones. Those of messages
// are whole, and the same as their deltas.
func mayBeCut(b Body) bool {
	switch b.(type) {
	case MessageEvent, ReasoningEvent, SessionFinishedEvent, RunFinishedEvent:
		return false
	}
	return true
}

// whole masks every string of a body.
func (r *Redactor) whole(b Body) Body {
	v := reflect.ValueOf(b)
	r.cuts = mayBeCut(b)
	defer func() { r.cuts = false }()
	if v.Kind() != reflect.Struct || !r.dirty(v, 0) {
		return b
	}
	w := rewriter{text: func(_, s string) string { return r.text(s) }, raw: r.raw, keep: -1}
	return w.body(b)
}

// dirty tells whether a value holds a secret anywhere.
func (r *Redactor) dirty(v reflect.Value, depth int) bool {
	if depth > maxWalk {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len() >= minSecret && r.has(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() && r.dirty(f, depth+1) {
				return true
			}
		}
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && r.dirty(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		if v.Type() == rawType {
			return r.dirtyRaw(v.Bytes())
		}
		for i := range v.Len() {
			if r.dirty(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if r.dirty(it.Key(), depth+1) || r.dirty(it.Value(), depth+1) {
				return true
			}
		}
	}
	return false
}

func (r *Redactor) dirtyRaw(raw []byte) bool {
	return slices.Contains(raw, '\\') || r.has(string(raw))
}

// raw masks the strings inside raw JSON, whatever escapes they are written
// with, and leaves everything else as it is. A number that is a secret becomes
// a string.
func (r *Redactor) raw(raw json.RawMessage) json.RawMessage {
	if !r.dirtyRaw(raw) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		end := tokenEnd(raw, i)
		token := raw[i:end]
		i = end
		if token[0] != '"' {
			masked := r.text(string(token))
			if masked == string(token) {
				out = append(out, masked...)
			} else {
				out = appendString(out, masked)
			}
			continue
		}
		var text string
		if json.Unmarshal(token, &text) != nil {
			out = append(out, r.text(string(token))...)
			continue
		}
		if masked := r.text(text); masked != text {
			out = appendString(out, masked)
		} else {
			out = append(out, token...)
		}
	}
	return out
}

// tokenEnd returns where the token of raw that begins at i ends: a string, a
// number or word, or one other byte. It reads text that is no JSON, too.
func tokenEnd(raw []byte, i int) int {
	if raw[i] != '"' {
		end := i
		for end < len(raw) && strings.IndexByte("\"{}[],: \t\r\n", raw[end]) < 0 {
			end++
		}
		return max(end, i+1)
	}
	for end := i + 1; end < len(raw); end++ {
		switch raw[end] {
		case '\\':
			end++
		case '"':
			return end + 1
		}
	}
	return len(raw)
}
