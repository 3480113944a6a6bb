package term

import "unicode/utf8"

// stripper separates text from the escape sequences between it. It keeps its
// state between chunks, so a sequence or a character may be cut anywhere. It
// knows the 7-bit and the 8-bit forms.
type stripper struct {
	state state
	// partial is the beginning of a character whose rest has not come.
	partial []byte
	// params are those of the control sequence being read.
	params []byte
	// length counts what a string sequence has swallowed.
	length int
	// text gets every character outside sequences, control characters
	// included; control gets the control sequences, and may be nil.
	text    func(r rune)
	control func(params string, final byte)
}

type state int

const (
	ground state = iota
	escape
	escapeIntermediate
	controlSequence
	stringSequence
	stringEscape
)

const (
	// maxString is how long a string sequence may be that nobody ends.
	maxString = 4 << 10
	// maxParams is more than any control sequence of interest has.
	maxParams = 64
)

func (p *stripper) write(chunk string) {
	if len(p.partial) > 0 {
		chunk = string(p.partial) + chunk
		p.partial = p.partial[:0]
	}
	for len(chunk) > 0 {
		r, size := utf8.DecodeRuneInString(chunk)
		if r == utf8.RuneError && size == 1 && !utf8.FullRuneInString(chunk) {
			p.partial = append(p.partial[:0], chunk...)
			return
		}
		p.rune(r)
		chunk = chunk[size:]
	}
}

// flush gives up on the rest of a character that was cut: each of its bytes is
// no text, as it would be if something else followed.
func (p *stripper) flush() {
	for range p.partial {
		p.rune(utf8.RuneError)
	}
	p.partial = p.partial[:0]
}

func (p *stripper) rune(r rune) {
	switch p.state {
	case ground:
		p.ground(r)
	case escape:
		p.escape(r)
	case escapeIntermediate:
		switch {
		case r >= 0x20 && r <= 0x2f:
		case r >= 0x30 && r <= 0x7e:
			p.state = ground
		default:
			p.abort(r)
		}
	case controlSequence:
		p.csi(r)
	case stringSequence:
		p.string(r)
	case stringEscape:
		p.state = ground
		if r != '\\' {
			p.escape(r)
		}
	}
}

func (p *stripper) ground(r rune) {
	switch {
	case r == 0x1b:
		p.state = escape
	case r == 0x9b:
		p.begin(controlSequence)
	case r == 0x90, r == 0x98, r == 0x9d, r == 0x9e, r == 0x9f:
		p.begin(stringSequence)
	case r >= 0x80 && r <= 0x9f:
	default:
		p.text(r)
	}
}

func (p *stripper) begin(s state) {
	p.state, p.params, p.length = s, p.params[:0], 0
}

func (p *stripper) escape(r rune) {
	switch {
	case r == '[':
		p.begin(controlSequence)
	case r == ']', r == 'P', r == 'X', r == '^', r == '_':
		p.begin(stringSequence)
	case r >= 0x20 && r <= 0x2f:
		p.state = escapeIntermediate
	case r >= 0x30 && r <= 0x7e:
		p.state = ground
	default:
		p.abort(r)
	}
}

// abort ends a sequence that is none after all; r is looked at afresh. Control
// characters inside a sequence do not end it, as on a terminal, but for the
// few that are meant to.
func (p *stripper) abort(r rune) {
	if r < 0x20 && r != '\n' && r != 0x1b && r != 0x18 && r != 0x1a {
		p.text(r)
		return
	}
	p.state = ground
	p.ground(r)
}

func (p *stripper) csi(r rune) {
	switch {
	case r >= 0x20 && r <= 0x3f:
		if len(p.params) < maxParams {
			p.params = append(p.params, byte(r))
		}
		if p.length++; p.length > maxString {
			p.state = ground
		}
	case r >= 0x40 && r <= 0x7e:
		p.state = ground
		if p.control != nil {
			p.control(string(p.params), byte(r))
		}
	default:
		p.abort(r)
	}
}

func (p *stripper) string(r rune) {
	p.length += utf8.RuneLen(r)
	switch {
	case r == 0x07, r == 0x9c:
		p.state = ground
	case r == 0x1b:
		p.state = stringEscape
	case r == '\n':
		p.abort(r)
	case r == 0x18, r == 0x1a:
		p.state = ground
	case p.length >= maxString:
		p.state = ground
	}
}
