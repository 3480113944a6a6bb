package strict

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// JSON returns the value as JSON with its keys in the order of the file, which
// is the order in which a model reads a schema. A date is text.
func (v Value) JSON() (json.RawMessage, error) {
	var b bytes.Buffer
	if err := v.writeJSON(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (v Value) writeJSON(b *bytes.Buffer) error {
	switch {
	case v.IsNull():
		b.WriteString("null")
		return nil
	case v.IsMap():
		b.WriteByte('{')
		first := true
		err := v.Entries(func(name string, value Value) error {
			if !first {
				b.WriteByte(',')
			}
			first = false
			writeString(b, name)
			b.WriteByte(':')
			return value.writeJSON(b)
		})
		b.WriteByte('}')
		return err
	case v.IsList():
		b.WriteByte('[')
		first := true
		err := v.Items(func(value Value) error {
			if !first {
				b.WriteByte(',')
			}
			first = false
			return value.writeJSON(b)
		})
		b.WriteByte(']')
		return err
	}
	return v.writeScalar(b)
}

func (v Value) writeScalar(b *bytes.Buffer) error {
	switch v.node.ShortTag() {
	case "!!bool":
		var is bool
		if err := v.node.Decode(&is); err != nil {
			return v.Errorf("%q cannot be read: %w", Shorten(v.node.Value), err)
		}
		b.WriteString(strconv.FormatBool(is))
		return nil
	case "!!int", "!!float":
		return v.writeNumber(b)
	}
	writeString(b, v.node.Value)
	return nil
}

func (v Value) writeNumber(b *bytes.Buffer) error {
	if json.Valid([]byte(v.node.Value)) {
		b.WriteString(v.node.Value)
		return nil
	}
	var n any
	if err := v.node.Decode(&n); err != nil {
		return v.Errorf("%q cannot be read: %w", Shorten(v.node.Value), err)
	}
	if f, ok := n.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return v.Errorf("%s is no number in JSON", v.node.Value)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return v.Errorf("%q cannot be read: %w", Shorten(v.node.Value), err)
	}
	b.Write(text)
	return nil
}

func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	// A string can always be encoded; the encoder ends it with a newline.
	_ = enc.Encode(s)
	b.Truncate(b.Len() - 1)
}
