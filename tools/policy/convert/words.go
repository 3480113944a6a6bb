package convert

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// split splits a text into words at blanks, with the quotes and backslashes of
// a POSIX shell. Nothing else has a meaning.
func split(text string) (words []string, err error) {
	var word strings.Builder
	begun := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		case '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil, errors.New("a quote is not closed")
			}
			word.WriteString(text[i+1 : i+1+end])
			i += end + 1
			begun = true
		case '"':
			end, part := doubleQuoted(text[i+1:])
			if end < 0 {
				return nil, errors.New("a quote is not closed")
			}
			word.WriteString(part)
			i += end + 1
			begun = true
		case '\\':
			if i++; i == len(text) {
				return nil, errors.New("it ends in a backslash")
			}
			word.WriteByte(text[i])
			begun = true
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// doubleQuoted reads up to the closing quote and returns its index, or -1.
func doubleQuoted(text string) (end int, part string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i, b.String()
		case c == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0:
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return -1, ""
}

// quote writes words as a shell reads them.
func quote(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsFunc(w, needsQuotes) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

func needsQuotes(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_./:=@%+,", r)
}

// literal writes a word as a glob that matches it alone.
func literal(word string) string {
	if word == "[" || word == "[[" {
		return word // the loader takes the test commands as words
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(word)
}

func literals(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = literal(w)
	}
	return out
}

// printable is a text on one line without control characters.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.QuoteToGraphic(text)
	}
	return text
}

// maxSlug bounds the name that a rule gets from its source, in bytes.
const maxSlug = 40

// slug makes a name of a text.
func slug(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= maxSlug {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}
