package model

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// unwrap feeds args to a decoder in pieces of size bytes.
func unwrap(t *testing.T, args string, size int) (string, bool) {
	t.Helper()
	var d freeformDecoder
	var got strings.Builder
	for len(args) > 0 {
		n := min(size, len(args))
		piece := d.Write(args[:n])
		if !utf8.ValidString(piece) {
			t.Fatalf("piece %q is cut inside a character", piece)
		}
		got.WriteString(piece)
		args = args[n:]
	}
	rest, ok := d.Close()
	return got.String() + rest, ok
}

func TestFreeformInputIsUnwrapped(t *testing.T) {
	for _, c := range []struct {
		name, args, want string
		ok               bool
	}{
		{"plain", `{"input":"*** Begin Patch\n+a\t\"b\"\\\n*** End Patch"}`, "*** Begin Patch\n+a\t\"b\"\\\n*** End Patch", true},
		{"spaces", " {\n \"input\" : \"a\" } \n", "a", true},
		{"empty input", `{"input":""}`, "", true},
		{"characters", `{"input":"ü😀 \u00fc\ud83d\ude00\/"}`, "ü😀 ü😀/", true},
		{"lone surrogates", `{"input":"\ud83dx\ude00\ud83d\ud83d\ude00\ud83d\n\ud83d"}`, "\ufffdx\ufffd\ufffd😀\ufffd\n\ufffd", true},
		{"raw line break", "{\"input\":\"a\nb\"}", "a\nb", true},
		{"nothing", "", "", true},
		{"null", "null", "", true},
		{"empty object", " { } ", "", true},
		{"stand-in before the real one", `{}{"input":"a"}`, "a", true},
		{"the input itself", "*** Begin Patch\n*** End Patch", "*** Begin Patch\n*** End Patch", true},
		{"JavaScript block", "{ let a = 1 }", "{ let a = 1 }", true},
		{"a string", `"a"`, `"a"`, true},
		{"other key", `{"patch":"a"}`, `{"patch":"a"}`, true},
		{"longer key", `{"inputs":"a"}`, `{"inputs":"a"}`, true},
		{"not a string", `{"input":5}`, `{"input":5}`, true},
		{"cut in the input", `{"input":"rm -r /tmp/x`, "rm -r /tmp/x", false},
		{"cut in an escape", `{"input":"a\u00`, "a", false},
		{"cut before the brace", `{"input":"a"`, "a", false},
		{"cut in the key", `{"inp`, "", false},
		{"second member", `{"input":"a","x":1}`, "a", false},
		{"two objects", `{"input":"a"}{"input":"b"}`, "a", false},
		{"wrong escape", `{"input":"a\d"}`, "a", false},
		{"wrong digits", `{"input":"a\u12x4"}`, "a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 1 << 20} {
				if got, ok := unwrap(t, c.args, size); got != c.want || ok != c.ok {
					t.Errorf("in pieces of %d: got %q %v, want %q %v", size, got, ok, c.want, c.ok)
				}
			}
		})
	}
}

func TestFreeformInputIsShownWhileItStreams(t *testing.T) {
	var d freeformDecoder
	if got := d.Write(`{"input":"first line\n`); got != "first line\n" {
		t.Fatalf("got %q", got)
	}
}

func TestSpaceFloodBeforeTheInputIsPassedOn(t *testing.T) {
	args := "{" + strings.Repeat(" ", 1<<20)
	if got, ok := unwrap(t, args, 64); got != args || !ok {
		t.Fatalf("got %d bytes, %v", len(got), ok)
	}
}

func TestFreeformArgsAreUnwrappedAgain(t *testing.T) {
	for _, input := range []string{"", "a", "<&>\u2028\"\\\x00\x7f ü😀", "\r\n"} {
		args := freeformArgs(input)
		if got, ok := unwrap(t, args, 1); got != input || !ok || !json.Valid([]byte(args)) {
			t.Errorf("%q became %q via %s", input, got, args)
		}
	}
}

func FuzzFreeform(f *testing.F) {
	for _, s := range []string{`{"input":"a\nb"}`, `{"input":"\ud83d\ude00\ud83d"} `, `{ } {"input" : "ü"}`, `{"input":"a"}x`, "nul", `{"input":"\`} {
		f.Add(s, uint8(1))
	}
	f.Fuzz(func(t *testing.T, args string, size uint8) {
		got, ok := unwrap(t, args, int(size)+1)
		if !utf8.ValidString(args) {
			return
		}
		var members map[string]json.RawMessage
		var object struct{ Input *string }
		if json.Unmarshal([]byte(args), &members) != nil || len(members) != 1 || members["input"] == nil ||
			json.Unmarshal([]byte(args), &object) != nil || object.Input == nil ||
			strings.Count(args, `"input"`) != 1 || len(args) > maxFreeformHead {
			return
		}
		if !ok || got != *object.Input {
			t.Fatalf("%s: got %q %v, want %q", args, got, ok, *object.Input)
		}
	})
}
