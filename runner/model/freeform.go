package model

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// APIs without freeform tools are offered a function with one string argument,
// freeformKey. Its arguments arrive as pieces of a JSON text; freeformDecoder
// turns them back into the input while they stream, so that a patch can be
// shown as it is written.

// freeformKey is the one argument of a function that stands for a freeform
// tool.
const freeformKey = "input"

// freeformSchema is the schema of such a function.
const freeformSchema = `{"type":"object","properties":{"input":{"type":"string","description":"The whole input, as plain text."}},"required":["input"],"additionalProperties":false}`

// freeformArgs returns the arguments that stand for a freeform input.
func freeformArgs(input string) string {
	return `{"` + freeformKey + `":` + quoteJSON(input) + `}`
}

// freeformDecoder unwraps the input out of the arguments of one call. Its zero
// value is ready.
//
// Arguments that do not even begin like the object they should be are passed on
// as they are: some models write the input itself, and about everything else
// the tool's own parser says best what is wrong. An empty object before the
// real one is a stand-in of the server and is dropped.
type freeformDecoder struct {
	state freeformState
	// head is what came before the input, in case it must be passed on.
	head []byte
	// escape is the escape sequence that the last piece ended in, with its
	// backslash; high a high surrogate whose partner is awaited.
	escape []byte
	high   rune
	// tail is the bytes of a character that the last piece ended in.
	tail []byte
}

// freeformState is where in the arguments the decoder stands.
type freeformState int

const (
	// beforeInput: in `{"input":"`.
	beforeInput freeformState = iota
	// inInput: in the string.
	inInput
	// afterInput: behind the string's closing quote; afterObject: behind the
	// closing brace.
	afterInput
	afterObject
	// passOn: these are no wrapped arguments.
	passOn
	// brokenInput: an input has begun, but what follows is no JSON.
	brokenInput
)

// maxFreeformHead bounds the space that may stand before the input.
const maxFreeformHead = 1024

// Write takes the next piece of the arguments and returns the piece of the
// input that it brings, always whole characters.
func (d *freeformDecoder) Write(piece string) string {
	var out strings.Builder
	for i := 0; i < len(piece); i++ {
		switch d.state {
		case beforeInput:
			d.head = append(d.head, piece[i])
			d.readHead(&out)
		case inInput:
			i += d.readInput(&out, piece[i:]) - 1
		case passOn:
			out.WriteString(piece[i:])
			i = len(piece)
		default:
			d.readEnd(piece[i])
		}
	}
	return d.whole(out.String())
}

// Close returns what is left when the arguments have ended. It returns false
// when they ended too early or were broken behind the input's beginning: what
// was written then is a part or a guess, and must not be run.
func (d *freeformDecoder) Close() (rest string, ok bool) {
	rest = strings.ToValidUTF8(string(d.tail), "\ufffd")
	switch d.state {
	case beforeInput:
		_, text := cutEmptyObject(string(d.head))
		text = strings.TrimSpace(text)
		return rest, text == "" || text == "null"
	case afterObject, passOn:
		return rest, true
	default:
		return rest, false
	}
}

// readHead looks whether what came so far begins `{"input":"`, with any space.
func (d *freeformDecoder) readHead(out *strings.Builder) {
	_, rest := cutEmptyObject(string(d.head))
	fits := len(d.head) <= maxFreeformHead
	for _, token := range [...]string{"{", `"` + freeformKey + `"`, ":", `"`} {
		rest = strings.TrimLeft(rest, jsonSpace)
		if after, found := strings.CutPrefix(rest, token); found {
			rest = after
			continue
		}
		first := token == "{"
		if fits && (strings.HasPrefix(token, rest) ||
			first && strings.HasPrefix("null", rest) ||
			// The object may still turn out to be empty.
			token[0] == '"' && rest == "}") {
			return
		}
		d.state = passOn
		out.Write(d.head)
		return
	}
	d.state = inInput
}

// cutEmptyObject cuts an empty object off the beginning of s.
func cutEmptyObject(s string) (found bool, rest string) {
	inner, found := strings.CutPrefix(strings.TrimLeft(s, jsonSpace), "{")
	if !found {
		return false, s
	}
	rest, found = strings.CutPrefix(strings.TrimLeft(inner, jsonSpace), "}")
	if !found {
		return false, s
	}
	return true, rest
}

// readInput decodes characters of the string and returns how many bytes it
// took.
func (d *freeformDecoder) readInput(out *strings.Builder, s string) int {
	if len(d.escape) > 0 {
		d.readEscape(out, s[0])
		return 1
	}
	n := 0
	for n < len(s) && s[n] != '\\' && s[n] != '"' {
		// A raw line break is no JSON, but what it means is plain.
		n++
	}
	if n > 0 {
		d.flushHigh(out)
		out.WriteString(s[:n])
		return n
	}
	if s[0] == '\\' {
		d.escape = append(d.escape, '\\')
		return 1
	}
	d.flushHigh(out)
	d.state = afterInput
	return 1
}

// readEscape adds a byte to the open escape sequence and decodes it when it is
// complete.
func (d *freeformDecoder) readEscape(out *strings.Builder, c byte) {
	d.escape = append(d.escape, c)
	if d.escape[1] != 'u' {
		d.flushHigh(out)
		at := strings.IndexByte(`"\/bfnrt`, c)
		if at < 0 {
			d.state = brokenInput
			return
		}
		out.WriteByte("\"\\/\b\f\n\r\t"[at])
		d.escape = d.escape[:0]
		return
	}
	if len(d.escape) > 2 && !isHex(c) {
		d.flushHigh(out)
		d.state = brokenInput
		return
	}
	if len(d.escape) == len(`\u0000`) {
		d.writeUnit(out, hexUnit(d.escape[2:]))
		d.escape = d.escape[:0]
	}
}

// writeUnit writes one UTF-16 unit, joining surrogates; a lone one becomes
// U+FFFD, as in encoding/json.
func (d *freeformDecoder) writeUnit(out *strings.Builder, r rune) {
	if d.high != 0 {
		if joined := utf16.DecodeRune(d.high, r); joined != utf8.RuneError {
			d.high = 0
			out.WriteRune(joined)
			return
		}
		d.flushHigh(out)
	}
	if r >= 0xd800 && r < 0xdc00 {
		d.high = r
		return
	}
	// WriteRune writes a lone low surrogate as U+FFFD.
	out.WriteRune(r)
}

func (d *freeformDecoder) flushHigh(out *strings.Builder) {
	if d.high != 0 {
		d.high = 0
		out.WriteRune(utf8.RuneError)
	}
}

// readEnd checks what follows the string.
func (d *freeformDecoder) readEnd(c byte) {
	switch {
	case strings.IndexByte(jsonSpace, c) >= 0:
	case c == '}' && d.state == afterInput:
		d.state = afterObject
	default:
		d.state = brokenInput
	}
}

// whole keeps back the bytes of an incomplete last character.
func (d *freeformDecoder) whole(s string) string {
	if len(d.tail) > 0 {
		s = string(d.tail) + s
		d.tail = d.tail[:0]
	}
	n := completeLen(s)
	d.tail = append(d.tail, s[n:]...)
	return strings.ToValidUTF8(s[:n], "\ufffd")
}

// completeLen returns the length of s without the bytes of a character at its
// end that has begun and may still be completed.
func completeLen(s string) int {
	for back := 1; back < utf8.UTFMax && back <= len(s); back++ {
		c := s[len(s)-back]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-back:]) {
				return len(s) - back
			}
			break
		}
	}
	return len(s)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// hexUnit returns the value of four hexadecimal digits.
func hexUnit(digits []byte) rune {
	var r rune
	for _, c := range digits {
		if c <= '9' {
			c -= '0'
		} else {
			c = c&^0x20 - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
