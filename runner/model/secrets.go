package model

import (
	"net/url"
	"strings"
)

// secretWords are parts of the names of headers and of parameters whose values
// are secrets.
var secretWords = []string{"auth", "key", "token", "secret", "cookie", "password", "signature"}

func namesSecret(name string) bool {
	lower := strings.ToLower(name)
	for _, word := range secretWords {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return lower == "sig"
}

// Secrets returns the values of the entry that must never be shown, by what
// holds them: headers whose names tell, and passwords and keys in its addresses.
// The key is not among them, since the entry only names its variable. Blanks at
// the end of a name tell several values of one thing apart.
func (p ProviderConfig) Secrets() map[string]string {
	s := map[string]string{}
	for name, value := range p.Headers {
		if !namesSecret(name) {
			continue
		}
		// The scheme in front of a token is no secret.
		put(s, "header "+name, value[strings.LastIndexByte(value, ' ')+1:])
		if strings.Contains(strings.ToLower(name), "cookie") {
			for pair := range strings.SplitSeq(value, ";") {
				_, crumb, _ := strings.Cut(pair, "=")
				put(s, "header "+name, strings.TrimSpace(crumb))
			}
		}
	}
	put(s, "password in proxy", passwordOf(p.Proxy))
	put(s, "password in base_url", passwordOf(p.BaseURL))
	if u, err := url.Parse(p.BaseURL); err == nil {
		for name, values := range u.Query() {
			for _, value := range values {
				if namesSecret(name) {
					put(s, name+" in base_url", value)
				}
			}
		}
	}
	return s
}

// put adds a value under a name that no other value has.
func put(s map[string]string, name, value string) {
	if value == "" {
		return
	}
	for {
		old, taken := s[name]
		if old == value {
			return
		}
		if !taken {
			s[name] = value
			return
		}
		name += " "
	}
}

// passwordOf is the password in an address, "" if there is none.
func passwordOf(address string) string {
	u, err := parseProxy(address)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// secrets returns the values that must not be shown, by the name of their
// variable or setting.
func (c *Config) secrets(p ProviderConfig, key string) map[string]string {
	s := p.Secrets()
	if key != "" {
		s[p.APIKeyEnv] = key
	}
	for _, env := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"} {
		put(s, "password in "+env, passwordOf(c.Getenv(env)))
	}
	return s
}
