package event

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeToleratesWhatIsNewer(t *testing.T) {
	e, err := Decode([]byte(`{"v":1,"seq":3,"ts":"2026-09-20T10:00:00.007Z","type":"notice","run_id":"r","level":"severe","code":"x","message":"m","novel":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Event{Seq: 3, Time: testTime, RunID: "r", Body: NoticeEvent{Level: "severe", Code: "x", Message: "m"}}
	if d := cmp.Diff(want, e); d != "" {
		t.Error(d)
	}
	line := `{"v":1,"seq":3,"ts":"2026-09-20T10:00:00.007Z","type":"job.paused","run_id":"r","why":"x"}`
	if e, err = Decode([]byte(line)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Body(Unknown{Name: "job.paused", Raw: []byte(line)}), e.Body); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(line, string(mustEncode(t, e))); d != "" {
		t.Errorf("an unknown event changed: %s", d)
	}
}

func TestDecodeRefusesWhatIsNoEvent(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON":               `{"v":1`,
		"no object":             `[1]`,
		"no type":               `{"v":1,"seq":1}`,
		"another major version": `{"v":2,"seq":1,"ts":"2026-09-20T10:00:00.007Z","type":"notice"}`,
		"no version":            `{"seq":1,"type":"notice"}`,
		"a wrong kind of value": `{"v":1,"seq":1,"ts":"2026-09-20T10:00:00.007Z","type":"message","text":5}`,
		"a time that is none":   `{"v":1,"seq":1,"ts":"yesterday","type":"message"}`,
		"empty":                 ``,
	} {
		if e, err := Decode([]byte(line)); err == nil {
			t.Errorf("%s: got %+v", name, e)
		}
	}
}

// readAll collects the texts of deltas and the errors of lines.
func readAll(t *testing.T, r *Reader) (texts []string, errs []error) {
	t.Helper()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return texts, errs
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		texts = append(texts, e.Body.(MessageDeltaEvent).Delta)
	}
}

func deltaLine(t testing.TB, text string) string {
	return string(mustEncode(t, testEvent(MessageDeltaEvent{MessageID: "m", Delta: text}))) + "\n"
}

func TestReaderTakesLongLinesWhole(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	r := NewReader(iotest.HalfReader(strings.NewReader(deltaLine(t, "a") + deltaLine(t, long) + "\n" + strings.TrimSuffix(deltaLine(t, "c"), "\n") + "\r\n")))
	texts, errs := readAll(t, r)
	if d := cmp.Diff([]string{"a", long, "c"}, texts); d != "" || errs != nil {
		t.Errorf("%s %v", d, errs)
	}
	if r.Torn() || r.Line() != 4 {
		t.Errorf("torn %v, line %d", r.Torn(), r.Line())
	}
}

func TestReaderReportsATornLastLine(t *testing.T) {
	whole := deltaLine(t, "a")
	last := strings.TrimSuffix(deltaLine(t, "b"), "\n")
	for cut := 1; cut <= len(last); cut++ {
		r := NewReader(strings.NewReader(whole + last[:cut]))
		texts, errs := readAll(t, r)
		if !r.Torn() || r.Offset() != int64(len(whole)) {
			t.Fatalf("cut at %d: torn %v, offset %d", cut, r.Torn(), r.Offset())
		}
		if cut == len(last) {
			if d := cmp.Diff([]string{"a", "b"}, texts); d != "" || errs != nil {
				t.Errorf("a whole event without newline: %s %v", d, errs)
			}
			continue
		}
		if len(texts) != 1 || len(errs) != 1 || !errors.Is(errs[0], ErrTorn) {
			t.Fatalf("cut at %d: %q %v", cut, texts, errs)
		}
	}
}

func TestReaderGoesOnAfterABadLine(t *testing.T) {
	r := NewReader(strings.NewReader("not json\n" + deltaLine(t, "a")))
	texts, errs := readAll(t, r)
	if d := cmp.Diff([]string{"a"}, texts); d != "" || len(errs) != 1 || errors.Is(errs[0], ErrTorn) || !strings.HasPrefix(errs[0].Error(), "line 1: ") {
		t.Errorf("%s %v", d, errs)
	}
}

func TestReaderEndsWithTheErrorOfItsSource(t *testing.T) {
	broken := errors.New("cable cut")
	r := NewReader(io.MultiReader(strings.NewReader(deltaLine(t, "a")), iotest.ErrReader(broken)))
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range filled(plainText) {
		f.Add(mustEncode(f, testEvent(b)))
	}
	f.Add([]byte(`{"v":1,"type":"x","ts":"2026-09-20T10:00:00Z","a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Decode(line)
		if err != nil {
			return
		}
		again, err := AppendJSON(nil, e)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		e2, err := Decode(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v in %s", err, again)
		}
		third, err := AppendJSON(nil, e2)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("not stable: %s, %s, %v", again, third, err)
		}
	})
}
