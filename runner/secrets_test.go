package runner

import (
	"context"
	"strings"
	"testing"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools"
)

// TestPanicShowsNoSecret has a tool crash with a secret in what it says, in an
// error of its own and in the arguments of its call.
func TestPanicShowsNoSecret(t *testing.T) {
	const secret = "canary-4f9a1c77"
	var out stream
	log := event.New(event.Options{RunID: "run_panic", Redact: event.NewRedactor(map[string]string{"API_TOKEN": secret})})
	log.Attach(event.Attachment{Name: "test", Sink: &out, Level: event.Full})
	type none struct{}
	outcome, _ := play(t, `{"tool_calls":[{"name":"crash","args":{"x":"`+secret+`"}}]}`, func(o *Options) {
		o.Log = log
		o.Tools = append(o.Tools, tools.New(tools.Def[none]{Name: "crash", Run: func(context.Context, none, tools.Env) (tools.Result, error) {
			panic("no route to " + secret)
		}}))
	})
	if outcome.End.Exit != fault.Internal {
		t.Fatalf("ended with %+v", outcome.End)
	}
	if _, err := Finish(log, outcome); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), secret) || !strings.Contains(out.String(), "[secret:API_TOKEN]") {
		t.Errorf("the secret is in the stream:\n%s", out.String())
	}
}
