package event

// newPercentValue is a secret as it turns up inside addresses and forms: any
// byte may be escaped with a percent sign, whatever the writer takes for
// special, and a space may be a plus sign.
func newPercentValue(marker, text string) *value {
	return &value{marker: marker, percent: text}
}

// nested is what stands between the percent sign and the digits of an escape
// that was escaped again, twice at most.
const nested = "2525"

// addPercent adds a value of newPercentValue.
func (m *masker) addPercent(v *value) {
	m.values = append(m.values, v)
	first, second := v.percent[0], v.percent[1]
	m.byFirst['%'] = append(m.byFirst['%'], v)
	m.mark('%', '2') // an escape inside an escape
	for _, digit := range digitBytes(first >> 4) {
		m.mark('%', digit)
	}
	if first == '%' {
		return // as it is, it is another value
	}
	m.byFirst[first] = append(m.byFirst[first], v)
	m.mark(first, second)
	m.mark(first, '%')
	if second == ' ' {
		m.mark(first, '+')
	}
}

// digitBytes are the two ways to write a digit.
func digitBytes(n byte) [2]byte { return [2]byte{"0123456789abcdef"[n], "0123456789ABCDEF"[n]} }

// matchPercent is match for a value of newPercentValue. The escapes of one text
// are all of one depth.
func (v *value) matchPercent(s string) (n int, more bool) {
	// Nearly always the text is another one before anything is escaped.
	same := 0
	for same < len(s) && same < len(v.percent) && s[same] == v.percent[same] && s[same] != '%' {
		same++
	}
	switch {
	case same == len(v.percent):
		return same, false
	case same == len(s):
		return 0, true
	case s[same] != '%' && (s[same] != '+' || v.percent[same] != ' '):
		return 0, false
	}
	for depth := 0; depth <= len(nested); depth += 2 {
		got, open := matchEscaped(s, v.percent, nested[:depth])
		n, more = max(n, got), more || open
	}
	return n, more
}

// matchEscaped matches a text whose escapes begin with a percent sign and
// inner.
func matchEscaped(s, text, inner string) (n int, more bool) {
	for i := range len(text) {
		c := text[i]
		size, open := matchEscape(s[n:], c, inner)
		if c == ' ' && size == 0 && inner != "" {
			// A plus sign is a space that was escaped already.
			var plus bool
			size, plus = matchEscape(s[n:], '+', inner[2:])
			open = open || plus
		}
		if size == 0 && open {
			return 0, true
		}
		switch {
		case size > 0:
			n += size
		case s[n] == c && c != '%', s[n] == '+' && c == ' ':
			n++
		default:
			return 0, false
		}
	}
	return n, false
}

// matchEscape matches one byte that is escaped.
func matchEscape(s string, c byte, inner string) (n int, more bool) {
	size := 1 + len(inner) + 2
	for i := range size {
		if i == len(s) {
			return 0, true
		}
		var ok bool
		switch {
		case i == 0:
			ok = s[i] == '%'
		case i <= len(inner):
			ok = s[i] == inner[i-1]
		case i == size-2:
			ok = hexDigit(s[i]) == c>>4
		default:
			ok = hexDigit(s[i]) == c&0xF
		}
		if !ok {
			return 0, false
		}
	}
	return size, false
}
