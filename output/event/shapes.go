package event

import "strings"

// shape is a token that can be recognised by its look. It is a secret from the
// moment that match says so; swallow then takes the rest of it.
type shape struct {
	marker string
	prefix string
	// class are the bytes of the token after the prefix, min how many it has at
	// least.
	class func(byte) bool
	min   int
	// digit requires a digit among the first digitWithin bytes, for prefixes
	// that words have too.
	digit bool
	// find replaces the above for shapes of several parts.
	find func(s string) (n int, more bool)
	// end tells from the last bytes that were swallowed that the secret is
	// over, for shapes that do not end with their class.
	end func(eaten []byte) bool
}

// digitWithin is how far into a token a digit is looked for. A random token
// of this length without a digit occurs once in thousands.
const digitWithin = 48

// knownShapes are literal prefixes with what has to follow. More special ones
// come first where prefixes overlap.
var knownShapes = []shape{
	{marker: "[secret:anthropic_key]", prefix: "sk-ant-", class: urlSafe, min: 20, digit: true},
	{marker: "[secret:api_key]", prefix: "sk-", class: urlSafe, min: 20, digit: true},
	{marker: "[secret:github_token]", prefix: "ghp_", class: alphanumeric, min: 30},
	{marker: "[secret:github_token]", prefix: "gho_", class: alphanumeric, min: 30},
	{marker: "[secret:github_token]", prefix: "ghu_", class: alphanumeric, min: 30},
	{marker: "[secret:github_token]", prefix: "ghs_", class: alphanumeric, min: 30},
	{marker: "[secret:github_token]", prefix: "ghr_", class: alphanumeric, min: 30},
	{marker: "[secret:github_token]", prefix: "github_pat_", class: wordByte, min: 40},
	{marker: "[secret:gitlab_token]", prefix: "glpat-", class: urlSafe, min: 20, digit: true},
	{marker: "[secret:aws_access_key_id]", prefix: "AKIA", class: upperDigit, min: 16},
	{marker: "[secret:aws_access_key_id]", prefix: "ASIA", class: upperDigit, min: 16},
	{marker: "[secret:slack_token]", prefix: "xoxb-", class: urlSafe, min: 10, digit: true},
	{marker: "[secret:slack_token]", prefix: "xoxp-", class: urlSafe, min: 10, digit: true},
	{marker: "[secret:slack_token]", prefix: "xoxa-", class: urlSafe, min: 10, digit: true},
	{marker: "[secret:slack_token]", prefix: "xoxr-", class: urlSafe, min: 10, digit: true},
	{marker: "[secret:slack_token]", prefix: "xoxs-", class: urlSafe, min: 10, digit: true},
	{marker: "[secret:slack_token]", prefix: "xapp-", class: urlSafe, min: 10, digit: true},
	{marker: "[secret:google_api_key]", prefix: "AIza", class: urlSafe, min: 35},
	{marker: "[secret:google_token]", prefix: "ya29.", class: urlSafe, min: 20},
	{marker: "[secret:npm_token]", prefix: "npm_", class: alphanumeric, min: 36},
	{marker: "[secret:pypi_token]", prefix: "pypi-", class: urlSafe, min: 50},
	{marker: "[secret:huggingface_token]", prefix: "hf_", class: alphanumeric, min: 30},
	{marker: "[secret:stripe_key]", prefix: "sk_live_", class: alphanumeric, min: 16},
	{marker: "[secret:stripe_key]", prefix: "sk_test_", class: alphanumeric, min: 16},
	{marker: "[secret:stripe_key]", prefix: "rk_live_", class: alphanumeric, min: 16},
	{marker: "[secret:sendgrid_key]", prefix: "SG.", class: dotted, min: 60},
	{marker: "[secret:digitalocean_token]", prefix: "dop_v1_", class: alphanumeric, min: 60},
	{marker: "[secret:groq_key]", prefix: "gsk_", class: alphanumeric, min: 40},
	{marker: "[secret:xai_key]", prefix: "xai-", class: alphanumeric, min: 40},
	{marker: "[secret:age_key]", prefix: "AGE-SECRET-KEY-1", class: upperDigit, min: 50},
	{marker: "[secret:jwt]", prefix: "eyJ", class: dotted, find: findJWT},
	{marker: "[secret:private_key]", prefix: "-----BEGIN ", class: pemByte, find: findPEM, end: endOfPEM},
}

func alphanumeric(c byte) bool { return wordByte(c) && c != '_' }
func urlSafe(c byte) bool      { return wordByte(c) || c == '-' }
func dotted(c byte) bool       { return urlSafe(c) || c == '.' }
func upperDigit(c byte) bool   { return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// pemByte is what a private key consists of: base64, headers, and line ends,
// also escaped ones.
func pemByte(c byte) bool { return alphanumeric(c) || strings.IndexByte("+/=-,:\\ \t\r\n", c) >= 0 }

func (sh *shape) match(s string) (n int, more bool) {
	if !strings.HasPrefix(s, sh.prefix) {
		return 0, strings.HasPrefix(sh.prefix, s)
	}
	if sh.find != nil {
		return sh.find(s)
	}
	n = len(sh.prefix)
	body := run(s[n:], sh.class)
	open := n+body == len(s)
	if body < sh.min {
		return 0, open
	}
	if !sh.digit {
		return n + sh.min, false
	}
	for i := range min(body, digitWithin) {
		if c := s[n+i]; c >= '0' && c <= '9' {
			return n + max(i+1, sh.min), false
		}
	}
	return 0, open && body < digitWithin
}

// run is how many bytes at the start of s are of the class.
func run(s string, class func(byte) bool) int {
	for i := range len(s) {
		if !class(s[i]) {
			return i
		}
	}
	return len(s)
}

// The parts of a JSON web token; the header is the longest that is waited for.
const (
	maxJWTHeader = 512
	minJWTPart   = 10
)

// findJWT recognises the header and the beginning of the payload, both of
// which are JSON objects in base64.
func findJWT(s string) (n int, more bool) {
	header := run(s[:min(len(s), maxJWTHeader)], urlSafe)
	if header == maxJWTHeader {
		return 0, false
	}
	if header == len(s) {
		return 0, true
	}
	if header < minJWTPart || s[header] != '.' {
		return 0, false
	}
	payload := s[header+1:]
	if !strings.HasPrefix(payload, "eyJ") {
		return 0, strings.HasPrefix("eyJ", payload)
	}
	if n = run(payload, urlSafe); n < minJWTPart {
		return 0, n == len(payload)
	}
	return header + 1 + minJWTPart, false
}

// maxPEMLabel is longer than any label of a private key.
const maxPEMLabel = 40

func findPEM(s string) (n int, more bool) {
	const begin, dashes = len("-----BEGIN "), "-----"
	label := run(s[begin:], func(c byte) bool { return upperDigit(c) || c == ' ' })
	rest := s[begin+label:]
	if label > maxPEMLabel {
		return 0, false
	}
	if !strings.HasPrefix(rest, dashes) {
		return 0, strings.HasPrefix(dashes, rest)
	}
	if !strings.Contains(s[begin:begin+label], "PRIVATE KEY") {
		return 0, false
	}
	return begin + label + len(dashes), false
}

// endOfPEM tells whether the bytes end with an END line.
func endOfPEM(eaten []byte) bool {
	s := string(eaten)
	if !strings.HasSuffix(s, "KEY-----") && !strings.HasSuffix(s, "BLOCK-----") {
		return false
	}
	return strings.Contains(s, "-----END ")
}

// keptEaten is how much of a swallowed text its end is looked for in; an END
// line is shorter.
const keptEaten = 80

// swallow takes from s what still belongs to the open secret and returns how
// much that was. It closes the secret when s goes on with something else.
func (st *maskState) swallow(s string) int {
	for i := range len(s) {
		if !st.open.class(s[i]) {
			st.open = nil
			return i
		}
		if st.open.end == nil {
			continue
		}
		st.eaten = append(st.eaten, s[i])
		if len(st.eaten) > 2*keptEaten {
			st.eaten = append(st.eaten[:0], st.eaten[len(st.eaten)-keptEaten:]...)
		}
		if s[i] == '-' && st.open.end(st.eaten) {
			st.open = nil
			return i + 1
		}
	}
	return len(s)
}
