package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Early returns the little of a Config that can be known before any file is
// read: the names that DROVER_REDACT lists. It is for errors of the start.
func Early(getenv func(string) string) *Config {
	c := &Config{}
	c.readRedact(getenv)
	return c
}

func (c *Config) readRedact(getenv func(string) string) {
	for _, name := range strings.Split(getenv(envPrefix+"REDACT"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			c.addRedact(name)
		}
	}
}

// secretWords are the last words of names whose values are secrets.
var secretWords = []string{
	"KEY", "APIKEY", "PWD", "PASS", "SSHPASS", "PASSPHRASE", "PAT", "AUTH", "COOKIE",
}

// IsSecret tells whether the value of a variable must never be shown: it is
// listed under redact, holds the key of a provider, or its name tells, in any
// case. A name tells if SECRET, PASSWORD, PASSWD or CREDENTIAL is anywhere in
// it, if it ends in TOKEN, or if its last word is one of secretWords; numbers
// at the end do not count. PWD itself is the shell's own.
func (c *Config) IsSecret(name string) bool {
	if slices.Contains(c.Redact, name) {
		return true
	}
	for _, p := range c.Providers {
		if p.APIKeyEnv == name && name != "" {
			return true
		}
	}
	upper := strings.ToUpper(name)
	for _, part := range []string{"SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"} {
		if strings.Contains(upper, part) {
			return true
		}
	}
	words := strings.FieldsFunc(upper, func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) == 0 || upper == "PWD" {
		return false
	}
	last := words[len(words)-1]
	return strings.HasSuffix(last, "TOKEN") || slices.Contains(secretWords, last)
}

// Secrets returns what must never be shown of an environment of KEY=VALUE and
// of the config itself, by name: the values of secret variables, the passwords
// in addresses such as postgres://user:password@host, what any provider's entry
// holds, and more. Blanks at the end of a name tell several values of one thing
// apart.
func (c *Config) Secrets(environ []string, more ...map[string]string) map[string]string {
	secrets := secretSet{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		c.addVariable(secrets, name, value)
	}
	for name, value := range c.ShellEnvironment.Set {
		c.addVariable(secrets, name, value)
	}
	// Also of a provider that is not used: commands can read the file.
	for _, p := range c.Providers {
		more = append(more, p.Secrets())
	}
	for _, m := range more {
		for name, value := range m {
			secrets.add(strings.TrimRight(name, " "), value)
		}
	}
	return secrets
}

func (c *Config) addVariable(secrets secretSet, name, value string) {
	if c.IsSecret(name) {
		secrets.add(name, value)
		return
	}
	for _, password := range passwords(name, value) {
		secrets.add(name, password)
	}
}

// secretSet is values by name.
type secretSet map[string]string

// add adds a value under a name that no other value has.
func (s secretSet) add(name, value string) {
	for {
		old, taken := s[name]
		if !taken {
			s[name] = value
		}
		if !taken || old == value {
			return
		}
		name += " "
	}
}

// userinfo finds the user and the password of an address. bareUserinfo is the
// form without a scheme that database drivers have. Few values need them.
var (
	userinfo = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#:@]*):([^\s/?#]+)@`)
	})
	bareUserinfo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([^\s/:@]*):(.+)@`) })
)

// passwords returns the passwords in a variable's value, as they are written
// and as they are meant. One that is the user's name again, or too short to be
// masked alone, is returned with what stands around it.
func passwords(name, value string) []string {
	if !strings.Contains(value, "@") {
		return nil
	}
	found := userinfo().FindAllStringSubmatch(value, -1)
	upper := strings.ToUpper(name)
	if found == nil && !strings.Contains(value, "://") &&
		(strings.HasSuffix(upper, "DSN") || strings.HasSuffix(upper, "_URL") || strings.HasSuffix(upper, "_URI")) {
		found = bareUserinfo().FindAllStringSubmatch(value, -1)
	}
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, m := range found {
		user, password := m[1], m[2]
		add(user + ":" + password + "@")
		if password == user || len(password) < 6 {
			continue
		}
		add(password)
		if plain, err := url.PathUnescape(password); err == nil {
			add(plain)
		}
	}
	return out
}
