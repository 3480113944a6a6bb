package event

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// escapeAll escapes every byte of s, or every byte that odd tells.
func escapeAll(s, format string, odd func(c byte) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if odd(s[i]) {
			fmt.Fprintf(&b, format, s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// escapings are the ways in which programs put a text into an address.
func escapings(s string) map[string]string {
	all := func(byte) bool { return true }
	return map[string]string{
		"query":          url.QueryEscape(s),
		"path":           url.PathEscape(s),
		"everything":     escapeAll(s, "%%%02X", all),
		"lower case":     escapeAll(s, "%%%02x", all),
		"no letters":     escapeAll(s, "%%%02x", func(c byte) bool { return c < 'A' || c > 'z' || strings.IndexByte("[\\]^_`", c) >= 0 }),
		"query in query": url.QueryEscape(url.QueryEscape(s)),
		"three times":    url.QueryEscape(url.QueryEscape(url.QueryEscape(s))),
		"spaces":         strings.ReplaceAll(url.QueryEscape(s), "+", "%20"),
	}
}

func TestSecretsInsideAddressesAreMasked(t *testing.T) {
	for _, secret := range []string{
		"canary123", "p@ss w%rd/x", "%25already%20escaped", "a+b c&d=e?f#g", "schlüssel😀geheim", `back\slash"quote`, "first line\nsecond line", "100%25",
	} {
		r := NewRedactor(map[string]string{"KEY": secret})
		for how, escaped := range escapings(secret) {
			for _, around := range []string{"%s", "https://h/?k=%s&x=1", "x%%3D%s", `{"url":"?k=%s"}`, "50%% of %s, 100%%"} {
				in := fmt.Sprintf(around, escaped)
				want := fmt.Sprintf(around, "[secret:KEY]")
				if got := r.String(in); got != want {
					t.Errorf("%q, %s: %q becomes %q", secret, how, in, got)
				}
				if got := joinMasked(r.masker, strings.SplitAfter(in, "")); got != want {
					t.Errorf("%q, %s, in deltas: %q becomes %q", secret, how, in, got)
				}
			}
		}
	}
}

// TestBase64InsideAddressesIsMasked escapes the characters of base64 that mean
// something in an address.
func TestBase64InsideAddressesIsMasked(t *testing.T) {
	secret := "???>>>~~~canary\xff\xfe"
	r := NewRedactor(map[string]string{"KEY": secret})
	for before := range 3 {
		plain := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", before) + secret))
		in := "https://h/?k=" + url.QueryEscape(plain)
		if in == "https://h/?k="+plain {
			t.Fatal("nothing was escaped")
		}
		if got := r.String(in); strings.Count(got, "[secret:KEY]") != 1 {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

func TestPercentSignsOfOthersStay(t *testing.T) {
	r := NewRedactor(map[string]string{"KEY": "canary123", "SIX": "k3yK3y"})
	for _, in := range []string{"50% of it", "%63anary12", "%63%61nary12%34", "%", "%2", "%25%25%25", "%c3%a4 ca%6", "%ZZcanary12", "%2563anary12%33"} {
		if got := r.String(in); got != in {
			t.Errorf("%q becomes %q", in, got)
		}
		if got := joinMasked(r.masker, strings.SplitAfter(in, "")); got != in {
			t.Errorf("in deltas %q becomes %q", in, got)
		}
	}
}

// FuzzPercent checks that a secret is masked in every usual way to escape it,
// whatever stands around it.
func FuzzPercent(f *testing.F) {
	f.Add("canary123", "https://h/?k=", "&x=1")
	f.Add("p@ss w%rd", "50% ", "%25")
	f.Add("%2525%", "%", "25")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		secret = strings.TrimSpace(strings.ReplaceAll(secret, "\r\n", "\n"))
		if len(secret) < minSecret || len(secret)+len(before)+len(after) > 1000 || ordinary(secret) {
			return
		}
		r := NewRedactor(map[string]string{"S": secret})
		for how, escaped := range escapings(secret) {
			if how == "spaces" && strings.Contains(secret, "+") {
				continue // the plus signs of the escaping are those of spaces only
			}
			// Letters and digits at the border could be part of an escape or of
			// another secret, and nobody could tell.
			in := before + " " + escaped + " " + after
			if got := r.String(in); !strings.Contains(got, "[secret:S]") {
				t.Fatalf("%q, %s: %q becomes %q", secret, how, in, got)
			}
		}
	})
}
