package event

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
)

// minSecret is the shortest value that is masked, in bytes. Anything shorter
// turns up in ordinary text so often that masking it would hide the run and
// protect nothing.
const minSecret = 8

// Redactor masks secrets: the values it was given become [secret:NAME], and
// tokens of well-known shapes [secret:SHAPE]. It masks bodies of events, also
// across the chunks of a series of deltas, so that the joined deltas equal the
// masked whole. A nil Redactor masks nothing.
//
// Body is not safe for concurrent use; the log calls it under its lock. String
// is.
type Redactor struct {
	secrets []secret
	// longest is the length of the longest secret, in bytes.
	longest int
	series  map[string]*series
	count   atomic.Int64
}

type secret struct{ value, mask string }

// NewRedactor returns a redactor for values by name. Values shorter than 8
// bytes are not masked.
func NewRedactor(secrets map[string]string) *Redactor {
	r := &Redactor{series: map[string]*series{}}
	for name, value := range secrets {
		value = strings.TrimSpace(value)
		if len(value) < minSecret {
			continue
		}
		mask := "[secret:" + name + "]"
		r.secrets = append(r.secrets, secret{value, mask})
		// Inside JSON text, such as streamed arguments, a value with quotes or
		// backslashes looks different.
		if quoted := string(appendString(nil, value)); quoted[1:len(quoted)-1] != value {
			r.secrets = append(r.secrets, secret{quoted[1 : len(quoted)-1], mask})
		}
	}
	// The longest first: where one secret is the beginning of another, the
	// longer one is meant. Names break ties, so that maps do not.
	slices.SortFunc(r.secrets, func(a, b secret) int {
		if len(a.value) != len(b.value) {
			return len(b.value) - len(a.value)
		}
		return strings.Compare(a.value+a.mask, b.value+b.mask)
	})
	if len(r.secrets) > 0 {
		r.longest = len(r.secrets[0].value)
	}
	return r
}

// Count is how many secrets have been masked.
func (r *Redactor) Count() int64 {
	if r == nil {
		return 0
	}
	return r.count.Load()
}

// String masks a whole text.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	out, _ := r.scan(s, 0, true)
	return out
}

// series is a series of deltas of which the end may be the beginning of a
// secret.
type series struct {
	held string
	// last is the byte before held, for shapes that begin at a word's border.
	last byte
	// build turns a text into the delta that brings it.
	build func(text string) Body
}

// Body returns the bodies to emit in place of b: text that was held back
// earlier and may be released now, then b itself, masked. A delta of which
// everything is held back yields nothing.
func (r *Redactor) Body(b Body) []Body {
	if r == nil {
		return []Body{b}
	}
	switch e := b.(type) {
	case MessageDeltaEvent:
		return r.delta("m "+e.MessageID, e.Delta, func(text string) Body { e.Delta = text; return e })
	case ReasoningDeltaEvent:
		return r.delta("m "+e.MessageID, e.Delta, func(text string) Body { e.Delta = text; return e })
	case ToolCallArgsDeltaEvent:
		return r.delta("a "+e.ToolCallID, e.Delta, func(text string) Body { e.Delta = text; return e })
	case TerminalAppendStringEvent:
		return r.terminal(e)
	case MessageEvent:
		return append(r.flush("m "+e.MessageID), r.whole(e))
	case ReasoningEvent:
		return append(r.flush("m "+e.MessageID), r.whole(e))
	case ToolCallEvent:
		return append(r.flush("a "+e.ToolCallID), r.whole(e))
	case ToolIncompleteEvent:
		return append(r.flush("a "+e.ToolCallID), r.whole(e))
	case TerminalCompletedEvent:
		return append(r.flush("t "+e.TerminalID), r.whole(e))
	}
	return []Body{r.whole(b)}
}

func (r *Redactor) delta(key, text string, build func(string) Body) []Body {
	s := r.series[key]
	if s == nil {
		s = &series{}
		r.series[key] = s
	}
	s.build = build
	out, rest := r.scan(s.held+text, s.last, false)
	s.held = rest
	if out == "" {
		return nil
	}
	s.last = out[len(out)-1]
	return []Body{build(out)}
}

// flush releases what a series holds back.
func (r *Redactor) flush(key string) []Body {
	s := r.series[key]
	if s == nil {
		return nil
	}
	delete(r.series, key)
	if s.held == "" {
		return nil
	}
	out, _ := r.scan(s.held, s.last, true)
	return []Body{s.build(out)}
}

// terminal masks output. Binary chunks are masked by themselves: a secret is
// text, and its chunk would have been text.
func (r *Redactor) terminal(e TerminalAppendStringEvent) []Body {
	key := "t " + e.TerminalID
	if e.Encoding == "base64" {
		out := r.flush(key)
		if raw, err := base64.StdEncoding.DecodeString(e.Delta); err == nil {
			if masked := r.String(string(raw)); masked != string(raw) {
				e.Delta = base64.StdEncoding.EncodeToString([]byte(masked))
			}
		}
		return append(out, e)
	}
	dropped := e.DroppedBytes
	e.DroppedBytes = 0
	out := r.delta(key, e.Delta, func(text string) Body { e.Delta = text; return e })
	if dropped > 0 {
		e.Delta, e.DroppedBytes = "", dropped
		out = append(out, e)
	}
	return out
}

// whole masks every string of a body.
func (r *Redactor) whole(b Body) Body {
	v := reflect.ValueOf(b)
	masked, changed := r.value(v)
	if !changed {
		return b
	}
	return masked.Interface().(Body)
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// value returns v with its strings masked, as a copy if anything changed.
func (r *Redactor) value(v reflect.Value) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if masked := r.String(s); masked != s {
			return reflect.ValueOf(masked).Convert(v.Type()), true
		}
	case reflect.Struct:
		return r.fields(v)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v, false
		}
		inner, changed := r.value(v.Elem())
		if !changed {
			return v, false
		}
		if v.Kind() == reflect.Interface {
			out := reflect.New(v.Type()).Elem()
			out.Set(inner)
			return out, true
		}
		out := reflect.New(inner.Type())
		out.Elem().Set(inner)
		return out, true
	case reflect.Slice:
		if v.Type() == rawMessage {
			raw := string(v.Bytes())
			if masked := r.String(raw); masked != raw && json.Valid([]byte(masked)) {
				return reflect.ValueOf(json.RawMessage(masked)), true
			}
			return v, false
		}
		return r.elements(v)
	case reflect.Map:
		return r.entries(v)
	}
	return v, false
}

func (r *Redactor) fields(v reflect.Value) (reflect.Value, bool) {
	var out reflect.Value
	for i := range v.NumField() {
		f, changed := r.value(v.Field(i))
		if !changed {
			continue
		}
		if !out.IsValid() {
			out = reflect.New(v.Type()).Elem()
			out.Set(v)
		}
		out.Field(i).Set(f)
	}
	if !out.IsValid() {
		return v, false
	}
	return out, true
}

func (r *Redactor) elements(v reflect.Value) (reflect.Value, bool) {
	var out reflect.Value
	for i := range v.Len() {
		e, changed := r.value(v.Index(i))
		if !changed {
			continue
		}
		if !out.IsValid() {
			out = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(out, v)
		}
		out.Index(i).Set(e)
	}
	if !out.IsValid() {
		return v, false
	}
	return out, true
}

func (r *Redactor) entries(v reflect.Value) (reflect.Value, bool) {
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	any := false
	for it := v.MapRange(); it.Next(); {
		key, keyChanged := r.value(it.Key())
		value, changed := r.value(it.Value())
		any = any || keyChanged || changed
		out.SetMapIndex(key, value)
	}
	if !any {
		return v, false
	}
	return out, true
}

// scan masks text, from left to right, the longest match at each place. Unless
// final, it stops where the text that is still to come could complete a match,
// and returns the rest from there. last is the byte before text, 0 if none.
func (r *Redactor) scan(text string, last byte, final bool) (out, rest string) {
	var b strings.Builder
	copied := 0
	for at := 0; ; {
		at = r.next(text, at, final)
		if at < 0 {
			break
		}
		before := last
		if at > 0 {
			before = text[at-1]
		}
		end, mask, open := r.match(text, at, before, final)
		if open {
			b.WriteString(text[copied:at])
			return b.String(), text[at:]
		}
		if mask == "" {
			at++
			continue
		}
		r.count.Add(1)
		b.WriteString(text[copied:at])
		b.WriteString(mask)
		at, copied = end, end
	}
	if copied == 0 {
		return text, ""
	}
	b.WriteString(text[copied:])
	return b.String(), ""
}

// next is the first place from at on where a match may begin, or -1.
func (r *Redactor) next(text string, at int, final bool) int {
	best := -1
	see := func(i int) {
		if i >= 0 && (best < 0 || i < best) {
			best = i
		}
	}
	for _, s := range r.secrets {
		if i := strings.Index(text[at:], s.value); i >= 0 {
			see(at + i)
		}
	}
	for _, s := range shapes {
		if i := strings.Index(text[at:], s.prefix); i >= 0 {
			see(at + i)
		}
	}
	if final {
		return best
	}
	// A match may also begin at the end, with more of it to come.
	for i := max(at, len(text)-max(r.longest, longestPrefix)+1); i < len(text) && (best < 0 || i < best); i++ {
		if r.begins(text[i:]) {
			see(i)
		}
	}
	return best
}

// begins tells whether tail is a proper beginning of a secret or of a shape's
// prefix.
func (r *Redactor) begins(tail string) bool {
	for _, s := range r.secrets {
		if len(tail) < len(s.value) && strings.HasPrefix(s.value, tail) {
			return true
		}
	}
	for _, s := range shapes {
		if len(tail) < len(s.prefix) && strings.HasPrefix(s.prefix, tail) {
			return true
		}
	}
	return false
}

// match looks for the match that begins at a place. open says that only more
// text can tell.
func (r *Redactor) match(text string, at int, before byte, final bool) (end int, mask string, open bool) {
	tail := text[at:]
	if !final && r.begins(tail) {
		return 0, "", true
	}
	for _, s := range r.secrets {
		if strings.HasPrefix(tail, s.value) {
			return at + len(s.value), s.mask, false
		}
	}
	if isTokenByte(before) {
		return 0, "", false
	}
	for _, s := range shapes {
		if !strings.HasPrefix(tail, s.prefix) {
			continue
		}
		n := len(s.prefix)
		for n < len(tail) && n < maxToken && s.holds(tail[n]) {
			n++
		}
		if n == len(tail) && n < maxToken && !final {
			return 0, "", true
		}
		if n-len(s.prefix) >= s.least && (s.must == "" || strings.Contains(tail[:n], s.must)) {
			return at + n, "[secret:" + s.name + "]", false
		}
	}
	return 0, "", false
}
