package jobs

import (
	"encoding/json"
	"strings"
	"testing"

	"drover/runner"
)

func TestSecretsAreInNoResult(t *testing.T) {
	c := &crew{opts: Options{Base: runner.Options{Mask: func(s string) string { return strings.ReplaceAll(s, "12345678", "[secret:PIN]") }}}}
	for in, want := range map[string]string{
		`{"pin":"it is 12345678"}`: `{"pin":"it is [secret:PIN]"}`,
		`{"12345678":1}`:           `{"[secret:PIN]":1}`,
		`{"pin":12345678}`:         `{"redacted":"{\"pin\":[secret:PIN]}"}`,
		`{"n":1.50}`:               `{"n":1.50}`,
	} {
		if got := string(c.maskJSON(json.RawMessage(in))); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	if c.maskJSON(nil) != nil {
		t.Error("nothing became something")
	}
}
