package event

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testSecrets = map[string]string{
	"API_TOKEN":   "canary123",
	"LONGER":      "canary123-and-more",
	"QUOTED":      `pa"ss\wo/rd`,
	"MULTI":       "first line of it all\nsecond line, also long\n",
	"PINS":        "1234567890",
	"UNICODE":     "schlüssel😀geheim",
	"BACKSLASHES": `C:\temp\secret\`,
	"SHORT":       "abc",
	"SIX":         "k3yK3y",
	"PORT":        "654321",
	"MODE":        "enabled",
}

// tokens are made up: they have the shape of secrets and open nothing.
var tokens = map[string]string{
	"anthropic_key":      "sk-ant-api03-" + strings.Repeat("Ab3_", 10),
	"api_key":            "sk-proj-" + strings.Repeat("Zy9x", 8),
	"github_token":       "ghp_" + strings.Repeat("a1B2", 9),
	"gitlab_token":       "glpat-" + strings.Repeat("x7Yz", 5),
	"aws_access_key_id":  "AKIA" + strings.Repeat("Q7W2", 4),
	"slack_token":        "xoxb-123456789012-abcdefABCDEF",
	"google_api_key":     "AIza" + strings.Repeat("Sy-_5", 7),
	"google_token":       "ya29." + strings.Repeat("a0Ab", 10),
	"npm_token":          "npm_" + strings.Repeat("Kd9f", 9),
	"pypi_token":         "pypi-" + strings.Repeat("AgEIc", 12),
	"huggingface_token":  "hf_" + strings.Repeat("QwEr", 9),
	"stripe_key":         "sk_live_" + strings.Repeat("4eC3", 6),
	"sendgrid_key":       "SG." + strings.Repeat("ab1_", 6) + "." + strings.Repeat("cd2-", 11),
	"digitalocean_token": "dop_v1_" + strings.Repeat("0f1e", 16),
	"groq_key":           "gsk_" + strings.Repeat("Mn4b", 13),
	"xai_key":            "xai-" + strings.Repeat("Pq8r", 20),
	"age_key":            "AGE-SECRET-KEY-1" + strings.Repeat("QPZ9", 14),
	"jwt":                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0",
	"private_key":        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/abc=\nQUJD\n-----END RSA PRIVATE KEY-----",
}

func TestSecretsAreMaskedInText(t *testing.T) {
	r := NewRedactor(testSecrets)
	tests := []struct{ name, in, want string }{
		{"alone", "canary123", "[secret:API_TOKEN]"},
		{"in a sentence", "the key is canary123, twice: canary123!", "the key is [secret:API_TOKEN], twice: [secret:API_TOKEN]!"},
		{"inside a word", "xcanary123x", "x[secret:API_TOKEN]x"},
		{"the longest one", "canary123-and-more", "[secret:LONGER]"},
		{"nearly the longest one", "canary123-and-mor", "[secret:API_TOKEN]-and-mor"},
		{"as it is", `pa"ss\wo/rd`, "[secret:QUOTED]"},
		{"in JSON", `{"k":"pa\"ss\\wo/rd"}`, `{"k":"[secret:QUOTED]"}`},
		{"in JSON with escaped slashes", `{"k":"pa\"ss\\wo\/rd"}`, `{"k":"[secret:QUOTED]"}`},
		{"in JSON inside JSON", `"{\"k\":\"pa\\\"ss\\\\wo/rd\"}"`, `"{\"k\":\"[secret:QUOTED]\"}"`},
		{"all escaped", `\u0063\u0061nar\u0079123`, "[secret:API_TOKEN]"},
		{"a pair of surrogates", `schl\u00fcssel\uD83D\ude00geheim`, "[secret:UNICODE]"},
		{"characters outside ASCII", "schlüssel😀geheim", "[secret:UNICODE]"},
		{"several lines", "first line of it all\nsecond line, also long", "[secret:MULTI]"},
		{"several lines on a terminal", "first line of it all\r\nsecond line, also long", "[secret:MULTI]"},
		{"several lines in JSON", `first line of it all\nsecond line, also long`, "[secret:MULTI]"},
		{"one line of several", "> second line, also long", "> [secret:MULTI]"},
		{"ending in a backslash", `cd C:\temp\secret\`, "cd [secret:BACKSLASHES]"},
		{"ending in a backslash, in JSON", `"C:\\temp\\secret\\"`, `"[secret:BACKSLASHES]"`},
		{"too short a secret", "abc abc", "abc abc"},
		{"six bytes", "a k3yK3y b", "a [secret:SIX] b"},
		{"six digits and a setting", "654321 enabled", "654321 enabled"},
		{"a marker again", "[secret:API_TOKEN]", "[secret:API_TOKEN]"},
		{"nothing", "", ""},
		{"an escape that is none", `\n \u00 \\ canary`, `\n \u00 \\ canary`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, r.String(tt.in)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.want, string(r.Bytes([]byte(tt.in)))); d != "" {
				t.Error(d)
			}
		})
	}
}

// wrap breaks a text into lines like the program base64.
func wrap(s string, width int) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + "\n")
		s = s[width:]
	}
	return b.String() + s + "\n"
}

// TestSecretsInsideBase64AreMasked moves a secret through every alignment and
// every place of a wrapped line, in each alphabet.
func TestSecretsInsideBase64AreMasked(t *testing.T) {
	for _, secret := range []string{"canary123", "k3yK3y", "???>>>~~~\xff\xfe", strings.Repeat("a long one, ", 20)} {
		r := NewRedactor(map[string]string{"KEY": secret})
		for before := range 120 {
			text := []byte(strings.Repeat("-", before) + secret + "\n")
			for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.RawURLEncoding} {
				for width, in := range map[int]string{0: enc.EncodeToString(text), 76: wrap(enc.EncodeToString(text), 76), 7: wrap(enc.EncodeToString(text), 7)} {
					for how, in := range map[string]string{
						"plain": in, "terminal": strings.ReplaceAll(in, "\n", "\r\n"), "indented": strings.ReplaceAll(in, "\n", "\n    "),
						"JSON": string(appendString(nil, in)), "JSON in JSON": string(appendString(nil, string(appendString(nil, in)))),
					} {
						got := r.String(in)
						if strings.Count(got, "[secret:KEY]") != 1 || len(got) > len(in)-len(secret)+len("[secret:KEY]")+3 {
							t.Fatalf("%d bytes before %q, %s, width %d, %s: %q becomes %q", before, secret, name, width, how, in, got)
						}
					}
					if chunked := joinMasked(r.masker, strings.SplitAfter(in, "")); chunked != r.String(in) {
						t.Fatalf("in deltas %q becomes %q", in, chunked)
					}
				}
			}
		}
	}
}

func TestNamesCannotBreakTheMarker(t *testing.T) {
	r := NewRedactor(map[string]string{"a\"]\nb": "canary123"})
	if d := cmp.Diff("[secret:a___b]", r.String("canary123")); d != "" {
		t.Error(d)
	}
}

func TestTokensOfKnownShapesAreMasked(t *testing.T) {
	r := NewRedactor(nil)
	for name, token := range tokens {
		want := "[secret:" + name + "]"
		for _, around := range []string{"%", "key=%", "%\n", "\"%\"", `{"a":"x\n%"}`, "\x1b[31m%\x1b[0m", `\u001b[1;31m%`, "(%)", "Bearer % x"} {
			in := strings.ReplaceAll(around, "%", token)
			if d := cmp.Diff(strings.ReplaceAll(around, "%", want), r.String(in)); d != "" {
				t.Errorf("%s in %q: %s", name, around, d)
			}
		}
		escaped := appendString(nil, token)
		if d := cmp.Diff(`"`+want+`"`, r.String(string(escaped))); d != "" {
			t.Errorf("%s in JSON: %s", name, d)
		}
	}
}

func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	r := NewRedactor(map[string]string{"X": "canary123"})
	for _, in := range []string{
		"risk-management-of-the-whole-department-and-more",
		"sk-folding-cube-with-a-long-class-name",
		"npm_config_registry=https://example.com",
		"the eyJ prefix", "task-1234567890123456789012345",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"-----------------------------------------",
		"AKIA and ASIA are prefixes", "xoxb- is one too", "SG.1.2", "ghp_short",
		"commit 3f2504e04f8911d39a0c0305e82c3301abcdef12",
		"do it: ghost, github_path, hf_hub, docs, python, pypi-server",
	} {
		if d := cmp.Diff(in, r.String(in)); d != "" {
			t.Error(d)
		}
	}
}

func TestAnUnfinishedPrivateKeyIsMaskedToItsEnd(t *testing.T) {
	r := NewRedactor(nil)
	in := `{"a":"-----BEGIN PRIVATE KEY-----\nMIIE","b":1}`
	if d := cmp.Diff(`{"a":"[secret:private_key]","b":1}`, r.String(in)); d != "" {
		t.Error(d)
	}
}

// pieces cuts s at random places.
func pieces(s string, rnd *rand.Rand) []string {
	var out []string
	for len(s) > 0 {
		n := 1 + rnd.IntN(min(len(s), 1+rnd.IntN(12)))
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func hostileText(rnd *rand.Rand) string {
	var parts []string
	for _, v := range testSecrets {
		parts = append(parts, v, string(appendString(nil, v)), v[:len(v)/2], v[1:], wrap(base64.StdEncoding.EncodeToString([]byte("x"+v)), 9))
	}
	for _, v := range tokens {
		parts = append(parts, v, v[:len(v)-len(v)/3], string(appendString(nil, v)))
	}
	parts = append(parts, " ", "\n", "\\", `\u00`, "é", "😀", "-----", "x", "sk-", "eyJ", `"`)
	var b strings.Builder
	for range 1 + rnd.IntN(8) {
		b.WriteString(parts[rnd.IntN(len(parts))])
	}
	return b.String()
}

func joinMasked(m *masker, chunks []string) string {
	var st maskState
	var b strings.Builder
	for _, c := range chunks {
		out, _ := m.push(&st, c, false)
		b.WriteString(out)
	}
	out, _ := m.push(&st, "", true)
	b.WriteString(out)
	return b.String()
}

func TestAnyCutOfATextIsMaskedLikeTheWhole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	m := newMasker(testSecrets)
	for range 4000 {
		text := hostileText(rnd)
		whole, _ := m.mask(text)
		chunks := pieces(text, rnd)
		if got := joinMasked(m, chunks); got != whole {
			t.Fatalf("chunks %q\n got %q\nwant %q", chunks, got, whole)
		}
		for name, secret := range testSecrets {
			if secret = strings.TrimSpace(secret); len(secret) >= minSecret && !ordinary(secret) && strings.Contains(whole, strings.TrimSpace(secret)) {
				t.Fatalf("%s is left in %q", name, whole)
			}
		}
	}
}

func TestReleasedChunksHoldWholeCharacters(t *testing.T) {
	m := newMasker(nil)
	var st maskState
	text := "Привет 世界 😀"
	var got []string
	for i := range len(text) {
		out, _ := m.push(&st, text[i:i+1], false)
		if out != "" {
			got = append(got, out)
		}
	}
	if d := cmp.Diff(strings.Split(text, ""), got); d != "" {
		t.Error(d)
	}
}

// typesOf returns the types of bodies with the chunks of deltas.
func typesOf(bodies []Body) []string {
	var out []string
	for _, b := range bodies {
		s := b.Type()
		if c := chunkOf(b); c != "" {
			s += " " + c
		}
		out = append(out, s)
	}
	return out
}

func TestHeldTextComesBeforeTheEventThatEndsItsSeries(t *testing.T) {
	tests := []struct {
		name  string
		delta func(string) Body
		end   Body
	}{
		{"message", func(s string) Body { return MessageDeltaEvent{MessageID: "m", Delta: s} }, MessageEvent{MessageID: "m"}},
		{"reasoning", func(s string) Body { return ReasoningDeltaEvent{MessageID: "m", Delta: s} }, ReasoningEvent{MessageID: "m"}},
		{"call", func(s string) Body { return ToolCallArgsDeltaEvent{ToolCallID: "c", Delta: s} }, ToolCallEvent{ToolCallID: "c"}},
		{"incomplete call", func(s string) Body { return ToolCallArgsDeltaEvent{ToolCallID: "c", Delta: s} }, ToolIncompleteEvent{ToolCallID: "c"}},
		{"terminal", func(s string) Body { return TerminalAppendStringEvent{TerminalID: "t", Delta: s} }, TerminalCompletedEvent{TerminalID: "t"}},
		{"message of a turn that broke off", func(s string) Body { return MessageDeltaEvent{MessageID: "m", Delta: s} }, TurnFinishedEvent{}},
		{"terminal at the end of the run", func(s string) Body { return TerminalAppendStringEvent{TerminalID: "t", Delta: s} }, RunFinishedEvent{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRedactor(testSecrets)
			var got []Body
			for _, b := range []Body{tt.delta("a can"), tt.delta("ary12"), NoticeEvent{}, tt.delta("3 b can"), tt.delta("ary"), tt.end, tt.end} {
				got = append(got, r.Body(b)...)
			}
			typ := tt.delta("").Type()
			want := []string{typ + " a ", "notice", typ + " [secret:API_TOKEN] b ", typ + " canary", tt.end.Type(), tt.end.Type()}
			if d := cmp.Diff(want, typesOf(got)); d != "" {
				t.Error(d)
			}
			if r.Count() != 1 {
				t.Errorf("count is %d", r.Count())
			}
		})
	}
}

func TestSeriesAreKeptApart(t *testing.T) {
	r := NewRedactor(testSecrets)
	a, b := Origin{SessionID: "a"}, Origin{SessionID: "b"}
	var got []string
	emit := func(o Origin, body Body) {
		for _, x := range r.route(o, body) {
			got = append(got, x.origin.SessionID+": "+typesOf([]Body{x.body})[0])
		}
	}
	emit(a, MessageDeltaEvent{MessageID: "m", Delta: "can"})
	emit(b, MessageDeltaEvent{MessageID: "m", Delta: "ary999"})
	emit(a, TerminalAppendStringEvent{TerminalID: "t", Stream: "stdout", Delta: "can"})
	emit(a, TerminalAppendStringEvent{TerminalID: "t", Stream: "stderr", Delta: "ary999 "})
	emit(a, TerminalAppendStringEvent{TerminalID: "t", Stream: "stdout", Delta: "ary123 "})
	emit(b, MessageEvent{MessageID: "m"})
	emit(b, RunFinishedEvent{})
	want := []string{
		"b: message.delta ary999",
		"a: terminal.output ary999 ", "a: terminal.output [secret:API_TOKEN] ",
		"b: message", "a: message.delta can", "b: run.finished",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBytesThatAreNoTextAreMaskedToo(t *testing.T) {
	r := NewRedactor(testSecrets)
	enc := func(s string) Body {
		return TerminalAppendStringEvent{TerminalID: "t", Delta: base64.StdEncoding.EncodeToString([]byte(s)), Encoding: "base64"}
	}
	var joined strings.Builder
	for _, b := range []Body{enc("\xff\xfe canar"), TerminalAppendStringEvent{TerminalID: "t", Delta: "y1"}, enc("23 \xff"), TerminalCompletedEvent{TerminalID: "t"}} {
		for _, out := range r.Body(b) {
			joined.WriteString(chunkOf(out))
		}
	}
	if d := cmp.Diff("\xff\xfe [secret:API_TOKEN] \xff", joined.String()); d != "" {
		t.Error(d)
	}
}

func TestDroppedBytesAreReportedThoughTheTextIsHeld(t *testing.T) {
	r := NewRedactor(testSecrets)
	got := r.Body(TerminalAppendStringEvent{TerminalID: "t", Delta: "can", DroppedBytes: 9})
	if d := cmp.Diff([]Body{TerminalAppendStringEvent{TerminalID: "t", DroppedBytes: 9}}, got); d != "" {
		t.Error(d)
	}
}

func TestNoFieldOfNoEventShowsASecret(t *testing.T) {
	r := NewRedactor(testSecrets)
	for _, secret := range []string{"canary123", `pa"ss\wo/rd`, tokens["jwt"], "schlüssel😀geheim"} {
		for _, b := range filled(func(string) string { return "x " + secret + " y" }) {
			before := mustEncode(t, testEvent(b))
			var lines string
			for _, out := range append(r.Body(b), r.Body(RunFinishedEvent{})...) {
				lines += string(mustEncode(t, testEvent(out)))
			}
			if strings.Contains(lines, secret) || strings.Contains(lines, strings.Trim(string(appendString(nil, secret)), `"`)) {
				t.Errorf("%s shows it: %s", b.Type(), lines)
			}
			if d := cmp.Diff(string(before), string(mustEncode(t, testEvent(b)))); d != "" {
				t.Errorf("%s: the producer's value was changed: %s", b.Type(), d)
			}
		}
	}
}

func TestRawJSONIsMaskedWhateverItsEscapes(t *testing.T) {
	r := NewRedactor(testSecrets)
	tests := []struct{ name, in, want string }{
		{"plain", `{"cmd":"echo canary123"}`, `{"cmd":"echo [secret:API_TOKEN]"}`},
		{"spaces stay", `{ "cmd" : "canary123" , "n": 1.50 }`, `{ "cmd" : "[secret:API_TOKEN]" , "n": 1.50 }`},
		{"escaped", `{"a\/b":"\u0063anary123","k":"\u0041"}`, `{"a\/b":"[secret:API_TOKEN]","k":"\u0041"}`},
		{"an escaped token", `{"a":"gh\u0070_` + tokens["github_token"][4:] + `"}`, `{"a":"[secret:github_token]"}`},
		{"a key", `{"canary123":true}`, `{"[secret:API_TOKEN]":true}`},
		{"a number", `{"pin":1234567890,"other":12}`, `{"pin":"[secret:PINS]","other":12}`},
		{"null", `null`, `null`},
		{"cut off", `{"a":"canary123`, `{"a":"[secret:API_TOKEN]`},
		{"JSON inside", `{"c":"{\"k\":\"pa\\\"ss\\\\wo/rd\"}"}`, `{"c":"{\"k\":\"[secret:QUOTED]\"}"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := r.Body(ToolCallEvent{Args: json.RawMessage(tt.in)})[0].(ToolCallEvent)
			if d := cmp.Diff(tt.want, string(got.Args)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDetailsOfAnyKindAreMasked(t *testing.T) {
	r := NewRedactor(testSecrets)
	type inner struct{ A *string }
	text := "canary123"
	details := map[string]any{
		"err":  errors.New("canary123"),
		"list": []any{"canary123", map[string]string{"k": "canary123"}},
		"ptr":  &inner{A: &text}, "nil": nil, "n": 5, "array": [1]string{"canary123"},
	}
	got := r.Body(NoticeEvent{Details: details})[0].(NoticeEvent)
	line := mustEncode(t, testEvent(got))
	if strings.Contains(string(line), "canary") || strings.Count(string(line), "[secret:API_TOKEN]") != 4 {
		t.Errorf("got %s", line)
	}
	if text != "canary123" || !reflect.DeepEqual(details["list"], []any{"canary123", map[string]string{"k": "canary123"}}) {
		t.Error("the producer's value was changed")
	}
}

func TestNilIsNoTrouble(t *testing.T) {
	var none *Redactor
	if d := cmp.Diff([]Body{NoticeEvent{Message: "canary123"}}, none.Body(NoticeEvent{Message: "canary123"})); d != "" {
		t.Error(d)
	}
	if none.String("x") != "x" || string(none.Bytes([]byte("x"))) != "x" || none.Count() != 0 {
		t.Error("a nil redactor changed something")
	}
	if got := NewRedactor(testSecrets).Body(nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	log := New(Options{RunID: "r", Redact: NewRedactor(nil)})
	log.Emit(Origin{}, nil)
	New(Options{}).Emit(Origin{}, nil)
}

func FuzzRedactChunks(f *testing.F) {
	f.Add("canary123", "the canary123 is", uint64(1))
	f.Add(`a"b\c/d`+"\n12", `x\"a\"b\\c/d\n12`, uint64(2))
	f.Add("12345678", tokens["private_key"]+tokens["jwt"], uint64(3))
	f.Fuzz(func(t *testing.T, secret, text string, seed uint64) {
		m := newMasker(map[string]string{"S": secret})
		whole, _ := m.mask(text)
		chunks := pieces(text, rand.New(rand.NewPCG(seed, 1)))
		if got := joinMasked(m, chunks); got != whole {
			t.Fatalf("chunks %q\n got %q\nwant %q", chunks, got, whole)
		}
		secret = strings.TrimSpace(strings.ReplaceAll(secret, "\r\n", "\n"))
		if len(secret) < minSecret || strings.ContainsAny(secret, "\x00]") {
			return
		}
		// Nothing between the markers may be the secret.
		if strings.Contains(strings.Join(splitMarkers(whole), "\x00"), secret) {
			t.Fatalf("%q is left in %q of %q", secret, whole, text)
		}
	})
}

func splitMarkers(s string) []string {
	var out []string
	for {
		before, after, ok := strings.Cut(s, "[secret:")
		out = append(out, before)
		if !ok {
			return out
		}
		_, s, _ = strings.Cut(after, "]")
	}
}

func BenchmarkRedact(b *testing.B) {
	env := map[string]string{}
	for i := range 10 {
		env[string(rune('A'+i))] = strings.Repeat(string(rune('a'+i)), 3) + "-secret-value-of-the-environment"
	}
	text := strings.Repeat("ok  \tpkg/a\t0.2s, and the gist of the whole thing\n", 20)
	for _, bb := range []struct {
		name string
		r    *Redactor
		body Body
	}{
		{"nil/message.delta", nil, MessageDeltaEvent{MessageID: "msg_12", Delta: "a chunk of text, as models send it"}},
		{"shapes/message.delta", NewRedactor(nil), MessageDeltaEvent{MessageID: "msg_12", Delta: "a chunk of text, as models send it"}},
		{"10 secrets/message.delta", NewRedactor(env), MessageDeltaEvent{MessageID: "msg_12", Delta: "a chunk of text, as models send it"}},
		{"10 secrets/terminal.output 1 kB", NewRedactor(env), TerminalAppendStringEvent{ToolCallID: "call_12", TerminalID: "t1", Stream: "stdout", Delta: text}},
		{"10 secrets/tool.result 1 kB", NewRedactor(env), ToolResultEvent{ToolCallID: "call_12", ToolName: "exec_command", Display: "exit 0", Content: text}},
		{"10 secrets/tool.status", NewRedactor(env), ToolStatusEvent{ToolCallID: "call_12", ToolName: "exec_command", Status: StatusRunning}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			log := New(Options{RunID: "r", Redact: bb.r})
			for b.Loop() {
				log.Emit(Origin{SessionID: "s"}, bb.body)
			}
		})
	}
}
