package event

// shape is a kind of token that can be told by how it begins.
type shape struct {
	name, prefix string
	// least is how many bytes follow the prefix at least.
	least int
	// must is a text that a token holds somewhere.
	must string
	// upper admits only upper-case letters and digits.
	upper bool
	// dots admits dots.
	dots bool
}

// maxToken bounds a token, in bytes; what is longer is no key.
const maxToken = 4096

// shapes are tokens that issuers mark so that they can be found. A shape whose
// prefix begins another's stands after it.
var shapes = []shape{
	{name: "openai_key", prefix: "sk-", least: 20},
	{name: "github_token", prefix: "ghp_", least: 30},
	{name: "github_token", prefix: "gho_", least: 30},
	{name: "github_token", prefix: "ghu_", least: 30},
	{name: "github_token", prefix: "ghs_", least: 30},
	{name: "github_token", prefix: "github_pat_", least: 30},
	{name: "gitlab_token", prefix: "glpat-", least: 20},
	{name: "aws_key_id", prefix: "AKIA", least: 16, upper: true},
	{name: "aws_key_id", prefix: "ASIA", least: 16, upper: true},
	{name: "slack_token", prefix: "xoxb-", least: 20},
	{name: "slack_token", prefix: "xoxp-", least: 20},
	{name: "google_key", prefix: "AIza", least: 35},
	{name: "google_token", prefix: "ya29.", least: 30},
	{name: "huggingface_token", prefix: "hf_", least: 30},
	{name: "npm_token", prefix: "npm_", least: 36},
	{name: "jwt", prefix: "eyJ", least: 60, must: ".eyJ", dots: true},
}

// longestPrefix is the length of the longest prefix above.
const longestPrefix = len("github_pat_")

func (s shape) holds(c byte) bool {
	switch {
	case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	case s.upper:
		return false
	case c == '.':
		return s.dots
	}
	return isTokenByte(c)
}

// isTokenByte tells whether c can stand inside a token; before one it must not.
func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
