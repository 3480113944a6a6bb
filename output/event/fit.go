package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file keeps lines below their limits (MaxLine, MaxBigLine), whatever an
// event holds: deltas are split, and the longest texts of everything else are
// cut.

const (
	// maxDelta is how many bytes one delta carries; even if every one of them
	// has to be escaped, the line stays below MaxLine.
	maxDelta = 8 << 10
	// maxID is the longest name of a call, a message, a session. Longer ones
	// are shortened, the same one always to the same.
	maxID = 256
	// minText is what is left of every text before lists are cut too.
	minText = 64
	// spare is for the count of lines, which is filled in per sink.
	spare = 32
)

// fitOrigin shortens what a row of somebody's table can make long.
func fitOrigin(o Origin) Origin {
	o.SessionID, o.ParentSessionID = shortID(o.SessionID), shortID(o.ParentSessionID)
	o.Agent, o.ItemID = shortID(o.Agent), shortID(o.ItemID)
	return o
}

// shortID returns an id that is at most maxID bytes long. A hash of the whole
// keeps long ids apart.
func shortID(id string) string {
	if len(id) <= maxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return cutText(id, maxID-20) + "~" + hex.EncodeToString(sum[:8])
}

// cutText returns at most n bytes of s and whole characters.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// fit appends the bodies to emit in place of b: b itself in nearly all cases.
func (l *Log) fit(o Origin, b Body, out []Body) []Body {
	switch b := b.(type) {
	case MessageDeltaEvent:
		b.MessageID = shortID(b.MessageID)
		return split(b, b.Delta, out)
	case ReasoningDeltaEvent:
		b.MessageID = shortID(b.MessageID)
		return split(b, b.Delta, out)
	case ToolCallArgsDeltaEvent:
		b.ToolCallID = shortID(b.ToolCallID)
		return split(b, b.Delta, out)
	case TerminalAppendStringEvent:
		b.ToolCallID, b.TerminalID = shortID(b.ToolCallID), shortID(b.TerminalID)
		b.Stream, b.Encoding = Stream(cutText(string(b.Stream), minText)), Encoding(cutText(string(b.Encoding), minText))
		return split(b, b.Delta, out)
	}
	size, longID := bound(reflect.ValueOf(b), "", 0)
	if longID {
		w := rewriter{text: shortText, raw: func(r json.RawMessage) json.RawMessage { return r }, keep: -1}
		b = w.body(b)
	}
	limit := maxLineOf(b.Type()) - spare
	if size < limit-maxLineOf("")/4 {
		return append(out, b)
	}
	line, err := AppendJSON(nil, Event{Seq: l.seq, Time: l.last, RunID: l.opts.RunID, Origin: o, Body: b})
	if err != nil || len(line) < limit {
		return append(out, b) // an event that cannot be encoded is its sink's trouble
	}
	envelope := len(appendEnvelope(nil, Event{Seq: l.seq, Time: l.last, RunID: l.opts.RunID, Origin: o, Body: b}))
	return append(out, cutBody(l.spill(b), limit-envelope))
}

func shortText(field, s string) string {
	if isID(field) {
		return shortID(s)
	}
	return s
}

// isID tells whether a field names something that other events name too.
func isID(field string) bool {
	return strings.HasSuffix(field, "ID") || field == "Incomplete" || field == "FailedItems"
}

// split appends a delta in pieces that fit a line.
func split(b Body, delta string, out []Body) []Body {
	if len(delta) <= maxDelta {
		return append(out, b)
	}
	if t, ok := b.(TerminalAppendStringEvent); ok && t.Encoding == "base64" {
		return splitBase64(t, out)
	}
	for len(delta) > maxDelta {
		piece := cutText(delta, maxDelta)
		if len(piece) < maxDelta-utf8.UTFMax {
			piece = delta[:maxDelta] // no text at all
		}
		out = append(out, withoutDropped(withText(b, piece)))
		delta = delta[len(piece):]
	}
	return append(out, withText(b, delta))
}

func splitBase64(b TerminalAppendStringEvent, out []Body) []Body {
	raw, err := base64.StdEncoding.DecodeString(b.Delta)
	if err != nil {
		// It cannot be cut in a way that its reader could undo: send it as text.
		b.Encoding = ""
		return split(b, b.Delta, out)
	}
	const piece = maxDelta / 4 * 3
	for len(raw) > piece {
		out = append(out, withoutDropped(withText(b, base64.StdEncoding.EncodeToString(raw[:piece]))))
		raw = raw[piece:]
	}
	return append(out, withText(b, base64.StdEncoding.EncodeToString(raw)))
}

// withText returns the delta with another text, its encoding as it was.
func withText(b Body, text string) Body {
	if t, ok := b.(TerminalAppendStringEvent); ok {
		t.Delta = text
		return t
	}
	return withChunk(b, text)
}

// bound returns how long the encoded value is at most, and whether one of its
// ids is too long.
func bound(v reflect.Value, field string, depth int) (size int, longID bool) {
	const perKey, perValue, worst = 24, 24, 6 // \u0000 is six bytes for one
	if depth > maxWalk {
		return MaxBigLine, false
	}
	add := func(v reflect.Value, field string) {
		n, long := bound(v, field, depth+1)
		size, longID = size+n, longID || long
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()*worst + perValue, v.Len() > maxID && isID(field)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() && !f.IsZero() {
				add(f, v.Type().Field(i).Name)
			}
			size += perKey
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			add(v.Elem(), field)
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len()*worst + perValue, false
		}
		for i := range v.Len() {
			add(v.Index(i), field)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			add(it.Key(), "key")
			add(it.Value(), field)
		}
	}
	return size + perValue, longID
}

// cutBody shortens the longest texts of a body until its members take at most
// room bytes, and its longest lists too if texts are not enough.
func cutBody(b Body, room int) Body {
	if u, ok := b.(Unknown); ok {
		u.Raw = nil
		return u
	}
	flagged := cutTexts(setTruncated(b), room, -1)
	for _, keep := range []int{-1, 1000, 300, 100, 30, 10, 3, 1} {
		if size(cutTexts(flagged, minText, keep)) > room {
			continue
		}
		// A few bytes more or less of a cut text are not worth another try.
		low, high := minText, room
		for low+max(minText, room/64) < high {
			if mid := (low + high) / 2; size(cutTexts(flagged, mid, keep)) <= room {
				low = mid
			} else {
				high = mid
			}
		}
		return cutTexts(flagged, low, keep)
	}
	return cutTexts(flagged, minText, 0)
}

func size(b Body) int {
	out, err := appendBody(nil, b)
	if err != nil {
		return MaxBigLine
	}
	return len(out)
}

// setTruncated sets the flag of types that have it.
func setTruncated(b Body) Body {
	v := reflect.New(reflect.TypeOf(b)).Elem()
	v.Set(reflect.ValueOf(b))
	if f := v.FieldByName("Truncated"); f.IsValid() && f.Kind() == reflect.Bool {
		f.SetBool(true)
	}
	return v.Interface().(Body)
}

// cutTexts returns the body with every text cut to n bytes and every list to
// keep elements. Where no flag says so, a cut text ends in an ellipsis.
func cutTexts(b Body, n, keep int) Body {
	mark := "…"
	if f := reflect.ValueOf(b).FieldByName("Truncated"); f.IsValid() {
		mark = ""
	}
	w := rewriter{keep: keep, text: func(field, s string) string {
		switch {
		case len(s) <= n:
			return s
		case isID(field):
			return shortID(s)
		}
		return cutText(s, n-len(mark)) + mark
	}}
	w.raw = func(raw json.RawMessage) json.RawMessage {
		if len(raw) <= n {
			return raw
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil {
			return appendString(nil, cutText(string(raw), n))
		}
		w.value(reflect.ValueOf(&v).Elem(), "", 0)
		out, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return out
	}
	return w.body(b)
}

// spill stores what will be cut as an artifact, if the log has a place for
// artifacts and the body one to name it.
func (l *Log) spill(b Body) Body {
	if l.opts.Artifacts == nil {
		return b
	}
	store := func(name string, data []byte) *Artifact {
		if len(data) == 0 {
			return nil
		}
		a, err := l.opts.Artifacts(name, data)
		if err != nil {
			return nil // the line says truncated all the same; the disk's trouble shows elsewhere
		}
		return &a
	}
	switch b := b.(type) {
	case MessageEvent:
		if b.Artifact == nil {
			b.Artifact = store(fileName("message", b.MessageID, "txt"), []byte(b.Text))
		}
		return b
	case ToolCallEvent:
		if b.Artifact == nil {
			data := []byte(b.Args)
			if b.ArgsRaw != "" {
				data = []byte(b.ArgsRaw)
			}
			b.Artifact = store(fileName("args", b.ToolCallID, "json"), data)
		}
		return b
	case ToolApprovalRequestEvent:
		if b.Artifact == nil {
			b.Artifact = store(fileName("approval", b.CorrelationID, "json"), []byte(b.Args))
		}
		return b
	case ToolResultEvent:
		if b.Artifact == nil {
			if data := []byte(b.Content); len(data) >= len(b.Structured) {
				b.Artifact = store(fileName("result", b.ToolCallID, "txt"), data)
			} else {
				b.Artifact = store(fileName("result", b.ToolCallID, "json"), b.Structured)
			}
		}
		return b
	case FileChangedEvent:
		if b.Artifact == nil {
			b.Artifact = store(fileName("diff", b.ToolCallID, "diff"), []byte(b.Diff))
		}
		return b
	case JobItemFinishedEvent:
		if b.Artifact == nil {
			b.Artifact = store(fileName("row", fmt.Sprintf("%d-%d-%s", b.Index, b.Attempt, b.JobID), "json"), b.Result)
		}
		return b
	case RunFinishedEvent:
		name, data := "message.txt", []byte(b.Message)
		if len(b.StructuredOutput) > len(data) {
			name, data = "structured_output.json", b.StructuredOutput
		}
		if a := store(name, data); a != nil {
			b.Artifacts = append(slices.Clip(b.Artifacts), *a)
		}
		return b
	}
	return b
}

// fileName makes a name for an artifact that is harmless in any file system.
func fileName(kind, id, extension string) string {
	id = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && wordByte(byte(r)) || r == '-' {
			return r
		}
		return '_'
	}, cutText(id, minText))
	return kind + "-" + id + "." + extension
}
