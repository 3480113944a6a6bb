package model

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Values in scripts: ${name} stands for a captured or given value, an unknown
// name stays as it is written, and $${ is a literal ${.

// fillIn fills the values into text.
func fillIn(text string, value func(name string) (string, bool)) string {
	at := strings.Index(text, "${")
	if at < 0 {
		return text
	}
	var b strings.Builder
	for at >= 0 {
		if at > 0 && text[at-1] == '$' {
			b.WriteString(text[:at-1])
			b.WriteString("${")
			text = text[at+2:]
		} else {
			b.WriteString(text[:at])
			text = text[at:]
			written := "${"
			if end := strings.IndexByte(text, '}'); end > 0 {
				if v, ok := value(text[2:end]); ok {
					b.WriteString(v)
					written = ""
					text = text[end+1:]
				}
			}
			b.WriteString(written)
			text = text[len(written):]
		}
		at = strings.Index(text, "${")
	}
	b.WriteString(text)
	return b.String()
}

// fillJSON fills the values into the strings of a JSON text. Keys, numbers and
// the order of members stay as they are. The text must be valid JSON.
func fillJSON(text string, value func(name string) (string, bool)) string {
	var b strings.Builder
	for len(text) > 0 {
		at := strings.IndexByte(text, '"')
		if at < 0 {
			break
		}
		end := at + stringLen(text[at:])
		literal := text[at:end]
		b.WriteString(text[:at])
		text = text[end:]
		if isKey := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), ":"); isKey {
			b.WriteString(literal)
			continue
		}
		var s string
		// A string literal of valid JSON always decodes.
		_ = json.Unmarshal([]byte(literal), &s)
		if filled := fillIn(s, value); filled != s {
			literal = quoteJSON(filled)
		}
		b.WriteString(literal)
	}
	b.WriteString(text)
	return b.String()
}

// stringLen returns the length of the JSON string literal that s begins with.
func stringLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// quoteJSON returns s as a JSON string, without escapes that only HTML needs.
func quoteJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// Encoding a string to memory cannot fail.
	_ = enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
