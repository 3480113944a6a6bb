package event

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const cutSecret = "canary-4f9a1c77-0123456789abcdef"

// TestASecretThatACutHasSplitIsMasked cuts a text at every byte of a secret, with
// every mark that says so.
func TestASecretThatACutHasSplitIsMasked(t *testing.T) {
	r := NewRedactor(map[string]string{"API_TOKEN": cutSecret})
	encoded := base64.StdEncoding.EncodeToString([]byte("xy" + cutSecret))
	for _, mark := range []string{"…", "…32500 tokens truncated…", "…7 chars truncated…", "\n[4096 bytes omitted]\n"} {
		for _, secret := range []string{cutSecret, encoded} {
			for n := range len(secret) + 1 {
				for name, in := range map[string]string{
					"before": "all " + secret[:n] + mark + " that", "behind": "all " + mark + secret[n:] + " that", "around": secret[:n] + mark + secret[n:],
				} {
					got := r.String(in)
					if left := longestPart(got, secret); left >= minPart+4 { // base64 has edges that tell nothing
						t.Fatalf("%s %q: %q shows %d bytes", name, in, got, left)
					}
					if d := cmp.Diff(in, withoutMarkers(got, in)); d != "" {
						t.Fatalf("%s: more than the secret is gone (-in +out):\n%s", name, d)
					}
				}
			}
		}
	}
}

// longestPart is the length of the longest part of secret that text holds.
func longestPart(text, secret string) (most int) {
	for i := range secret {
		for n := most + 1; i+n <= len(secret) && strings.Contains(text, secret[i:i+n]); n++ {
			most = n
		}
	}
	return most
}

// withoutMarkers puts what markers stand for back, if all else is the same.
func withoutMarkers(masked, in string) string {
	parts := strings.Split(masked, "[secret:API_TOKEN]")
	at := 0
	for _, p := range parts {
		i := strings.Index(in[at:], p)
		if i < 0 {
			return masked
		}
		at += i + len(p)
	}
	return in
}

func TestWhatACutHasNotSplitIsLeftAlone(t *testing.T) {
	r := NewRedactor(map[string]string{"API_TOKEN": cutSecret, "BACKSLASHES": `\\\\\\\\\\server\share`, "SHORT": "k3yK3y"})
	for _, in := range []string{
		"", "…", "……", "a canary… and more", "canary-4f9a1c77 is here", "…cdef is the end", "wait… what", "k3yK3…", `C:\\\\\\\\\\\\…`,
		"x bytes omitted]\n", "[x bytes omitted]\n", "[1 bytes omitted] canary-4f9a1c77", "…abcdef…", " bytes omitted]\n…",
	} {
		if d := cmp.Diff(in, r.String(in)); d != "" {
			t.Error(d)
		}
	}
}

// TestResultsThatAreCutShowNoPartOfASecret: events of calls are cut ones, while
// the text of a message is the same as its deltas.
func TestResultsThatAreCutShowNoPartOfASecret(t *testing.T) {
	r := NewRedactor(map[string]string{"API_TOKEN": cutSecret})
	in := "head " + cutSecret[:20] + "…9 tokens truncated…" + cutSecret[12:] + " tail"
	raw, err := json.Marshal(map[string]any{"text": in})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []Body{
		ToolResultEvent{ToolCallID: "c", Content: in}, ToolResultEvent{ToolCallID: "c", Structured: raw}, ToolCallEvent{Display: in},
		NoticeEvent{Message: in, Details: map[string]any{"x": in}}, HookFinishedEvent{Reason: in}, ErrorEvent{Message: in},
	} {
		before := r.Count()
		got := fmt.Sprintf("%s", mustJSON(t, r.Body(b)[0]))
		if longestPart(got, cutSecret) >= minPart || !strings.Contains(got, "[secret:API_TOKEN]…9 tokens truncated…[secret:API_TOKEN]") || r.Count() < before+2 {
			t.Errorf("%T becomes %s, %d masked", b, got, r.Count()-before)
		}
	}
	if got := r.Body(MessageEvent{MessageID: "m", Text: in})[0].(MessageEvent); got.Text != in {
		t.Errorf("the message is another than its deltas: %q", got.Text)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestTheBeginningOfASecretBeforeAGapIsMasked: what was held back is not
// completed by what follows a gap, and is not shown either.
func TestTheBeginningOfASecretBeforeAGapIsMasked(t *testing.T) {
	r := NewRedactor(map[string]string{"API_TOKEN": cutSecret})
	var shown strings.Builder
	var dropped int64
	for _, b := range []Body{
		TerminalAppendStringEvent{TerminalID: "t", Stream: "stdout", Delta: "out " + cutSecret[:25]},
		TerminalAppendStringEvent{TerminalID: "t", Stream: "stdout", DroppedBytes: 99},
		TerminalAppendStringEvent{TerminalID: "t", Stream: "stdout", Delta: " more canary-"},
		TerminalCompletedEvent{TerminalID: "t"},
	} {
		for _, b := range r.Body(b) {
			if d, ok := b.(TerminalAppendStringEvent); ok {
				shown.WriteString(d.Delta)
				dropped += d.DroppedBytes
			}
		}
	}
	if d := cmp.Diff("out [secret:API_TOKEN] more canary-", shown.String()); d != "" || dropped != 99 {
		t.Errorf("%d dropped (-want +got):\n%s", dropped, d)
	}
}

func FuzzCuts(f *testing.F) {
	for _, s := range []string{"", "…", cutSecret[:20] + "…", "…" + cutSecret[9:], "\n[12 bytes omitted]\n" + cutSecret[9:], `canary\u002d4f9a1c77…`} {
		f.Add(s)
	}
	m := newMasker(map[string]string{"API_TOKEN": cutSecret, "OTHER": `pa"ss\wo/rd-and-more`})
	f.Fuzz(func(t *testing.T, s string) {
		s, _ = m.mask(s)
		got, n := m.maskCuts(s)
		if (n == 0) != (got == s) {
			t.Errorf("%d parts, and %q becomes %q", n, s, got)
		}
		if again, more := m.maskCuts(got); more != 0 {
			t.Errorf("%q becomes %q becomes %q", s, got, again)
		}
	})
}

func BenchmarkCuts(b *testing.B) {
	m := newMasker(testSecrets)
	text := strings.Repeat("ok  drover/output/event 0.2s … and more of it\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.maskCuts(text)
	}
}
