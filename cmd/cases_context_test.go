package cmd

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drover/output/event"
)

// TestConversationLongerThanTheWindowIsShortened lets a server refuse what is
// too long (github.com/tetsuo-ai/agenc-core/issues/2497). Dropping the oldest
// outputs is enough in one case; in the other nothing is, and the run ends with
// its session and its usage kept.
func TestConversationLongerThanTheWindowIsShortened(t *testing.T) {
	t.Parallel()
	for _, w := range wireAPIs {
		for name, window := range map[string]int{"enough": 40 << 10, "never enough": 1 << 10} {
			t.Run(w.api+" "+name, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					n := bytes.Count(body, []byte(w.result))
					if err != nil || len(body) > window && n > 0 {
						rw.WriteHeader(http.StatusBadRequest)
						_, _ = io.WriteString(rw, `{"error":{"type":"invalid_request_error","message":"prompt is too long: maximum context length","code":"context_length_exceeded"}}`)
						return
					}
					rw.Header().Set("Content-Type", "text/event-stream")
					turn := turnOfTask{text: "Done."}
					if n < 3 {
						turn = turnOfTask{tool: "exec_command", input: "head -c 15000 /dev/zero | tr '\\0' " + string(rune('a'+n))}
					}
					_, _ = io.WriteString(rw, w.encode(turn, n)) // a client that is gone shows in the test
				}))
				t.Cleanup(server.Close)
				p := withServer(t, server.URL, w.api, "go")
				stdout, exit := p.output()
				compacted := bodies[event.ContextCompactedEvent](t, stdout)
				end := lastLine(t, stdout)
				want := 0
				if name == "never enough" {
					want = 6
				}
				if exit != want || len(compacted) == 0 || end.Usage.InputTokens == 0 {
					t.Errorf("exit %d, want %d; %d times shortened; usage %+v; %s", exit, want, len(compacted), end.Usage, p.stderr.String())
				}
				for _, c := range compacted {
					if c.TokensAfter >= c.TokensBefore {
						t.Errorf("shortened from %d to %d tokens", c.TokensBefore, c.TokensAfter)
					}
				}
				if len(p.sessionFile()) == 0 || want == 0 && !strings.Contains(end.Message, "Done.") {
					t.Errorf("message %q", end.Message)
				}
			})
		}
	}
}
