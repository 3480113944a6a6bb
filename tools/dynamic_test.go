package tools

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/tools/policy"
)

const deployParameters = `{"type":"object","properties":{"env":{"type":"string","enum":["staging","production"]}},"required":["env"],"additionalProperties":false}`

func dynamicEnv(t *testing.T) Env {
	t.Helper()
	return Env{
		Cwd: t.TempDir(), CallID: "c1", Emit: func(event.Body) {},
		Commands: Commands{RunID: "run_dynamic", Environ: os.Environ(), Remove: []string{"DEPLOY_TOKEN"}, Grace: time.Second},
	}
}

// callDynamic prepares and runs one call.
func callDynamic(t *testing.T, d Dynamic, env Env, args string) (*Call, Result) {
	t.Helper()
	tool, err := NewDynamic(d, func(name string) string { return map[string]string{"DEPLOY_TOKEN": "s3cret-of-deploy\n"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	call, err := tool.Prepare(env, Input{Text: args})
	if err != nil {
		t.Fatal(err)
	}
	res, err := call.Run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return call, res
}

func shell(script string) []string { return []string{"sh", "-c", script} }

func TestCommandToolReadsItsArgumentsFromStdin(t *testing.T) {
	env := dynamicEnv(t)
	d := Dynamic{Name: "deploy", Doc: "Deploys.", Parameters: json.RawMessage(deployParameters), Command: shell("echo noise >&2; cat")}
	call, res := callDynamic(t, d, env, ` {"env": "staging"} `)
	if res.IsError || res.Text != "{\"env\":\"staging\"}\n" {
		t.Errorf("got %+v", res)
	}
	want := []policy.Action{policy.Tool("deploy", json.RawMessage(`{"env":"staging"}`)), policy.Exec(env.Cwd, d.Command...)}
	if diff := cmp.Diff(want, call.Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	if call.Display != `deploy: {"env":"staging"}` || call.Timeout != DynamicTimeout {
		t.Errorf("display %q, timeout %v", call.Display, call.Timeout)
	}
}

func TestCommandToolThatFailsSaysHow(t *testing.T) {
	for _, c := range []struct {
		name, script, code, text string
		timeout                  time.Duration
	}{
		{"exit code", "echo out; echo why >&2; exit 3", "exit_code", "deploy failed: its command exited with code 3\nOutput:\nout\nwhy\n", 0},
		{"timeout", "echo begun; exec sleep 600", "timeout", "timed out after 200ms", 200 * time.Millisecond},
	} {
		_, res := callDynamic(t, Dynamic{Name: "deploy", Doc: "x", Command: shell(c.script), Timeout: c.timeout}, dynamicEnv(t), "")
		if !res.IsError || res.Code != c.code || !strings.Contains(res.Text, c.text) {
			t.Errorf("%s: got %+v", c.name, res)
		}
	}
	_, res := callDynamic(t, Dynamic{Name: "deploy", Doc: "x", Command: []string{"/nowhere/deploy"}}, dynamicEnv(t), "")
	if !res.IsError || res.Code != "not_started" {
		t.Errorf("got %+v", res)
	}
}

func TestDynamicArgumentsAreCheckedBeforeAnythingRuns(t *testing.T) {
	env := dynamicEnv(t)
	ran := filepath.Join(env.Cwd, "ran")
	tool, err := NewDynamic(Dynamic{Name: "deploy", Doc: "x", Parameters: json.RawMessage(deployParameters), Command: shell("touch " + ran)}, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		free bool
		want string
	}{
		{`{"env":"moon"}`, false, "they do not match the schema"},
		{`{}`, false, "they do not match the schema"},
		{`{"env":"staging","more":1}`, false, "they do not match the schema"},
		{`[]`, false, "expected a JSON object"},
		{`{"env":`, false, "failed to parse function arguments"},
		{`staging`, true, "incompatible payload"},
	} {
		if _, err := tool.Prepare(env, Input{Text: c.args, Freeform: c.free}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
	if spec := tool.Spec(); spec.Parallel || !spec.Offered || string(spec.Schema) != deployParameters {
		t.Errorf("spec %+v", spec)
	}
}

func TestHeaderWithoutItsVariableIsRefused(t *testing.T) {
	d := Dynamic{Name: "x", Doc: "x", URL: "https://example.com", Headers: map[string]string{"Authorization": "DEPLOY_TOKEN"}}
	for value, want := range map[string]string{"": "DEPLOY_TOKEN, which holds the header Authorization, is not set", "ab\ncd": "more than one line"} {
		_, err := NewDynamic(d, func(string) string { return value })
		if err == nil || !strings.Contains(err.Error(), want) || value != "" && strings.Contains(err.Error(), "cd") {
			t.Errorf("got %v", err)
		}
	}
	for _, name := range []string{"Host", "content-length", "A b", "A:"} {
		d.Headers = map[string]string{name: "TOKEN"}
		if err := d.Check(); err == nil {
			t.Errorf("the header %q was accepted", name)
		}
	}
}

func TestEndpointToolPostsItsArguments(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, "deployed")
	}))
	defer server.Close()
	d := Dynamic{Name: "deploy", Doc: "x", Parameters: json.RawMessage(deployParameters), URL: server.URL + "/v1", Headers: map[string]string{"Authorization": "DEPLOY_TOKEN"}}
	call, res := callDynamic(t, d, dynamicEnv(t), `{"env":"staging"}`)
	if res.IsError || res.Text != "deployed" {
		t.Errorf("got %+v", res)
	}
	if got.Method != "POST" || got.URL.Path != "/v1" || string(body) != `{"env":"staging"}` ||
		got.Header.Get("Authorization") != "s3cret-of-deploy" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("request %s %s %v: %s", got.Method, got.URL, got.Header, body)
	}
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if a := call.Actions; len(a) != 2 || a[0].Kind != policy.KindTool || a[1].Kind != policy.KindHost || a[1].Host != u.Host {
		t.Errorf("actions %+v", a)
	}
}

func TestEndpointThatDoesNotAnswerWellIsAToolError(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") }))
	defer elsewhere.Close()
	hold := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/500":
			http.Error(w, "no space", http.StatusInternalServerError)
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/moved":
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
		case "/here":
			_, _ = io.Copy(w, r.Body)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusTemporaryRedirect)
		case "/silent":
			<-hold
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", maxAnswer+5))
		}
	}))
	defer server.Close()
	defer close(hold)
	for _, c := range []struct{ path, code, text string }{
		{"/500", "http_status", "deploy failed: the server answered 500 Internal Server Error\nno space"},
		{"/away", "unreachable", "it redirects to another host"},
		{"/moved", "", `{"a":1}`},
		{"/round", "unreachable", "it redirects too often"},
		{"/silent", "timeout", "no complete answer came within 300ms"},
		{"/cut", "unreachable", "unexpected EOF"},
		{"/large", "", "[the rest was left out"},
		{"/empty", "", ""},
	} {
		d := Dynamic{Name: "deploy", Doc: "x", Parameters: json.RawMessage(`{"type":"object"}`), URL: server.URL + c.path}
		if c.path == "/silent" {
			d.Timeout = 300 * time.Millisecond
		}
		_, res := callDynamic(t, d, dynamicEnv(t), `{"a":1}`)
		if res.Code != c.code || res.IsError != (c.code != "") || !strings.Contains(res.Text, c.text) || res.Truncated != (c.path == "/large") {
			res.Text = display(res.Text)
			t.Errorf("%s: got %+v", c.path, res)
		}
	}
}

func FuzzDynamicArguments(f *testing.F) {
	f.Add(`{"env":"staging"}`)
	f.Add(`{"env":["a",1e999]}`)
	tool, err := NewDynamic(Dynamic{Name: "deploy", Doc: "x", Parameters: json.RawMessage(deployParameters), Command: []string{"true"}}, os.Getenv)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		call, err := tool.Prepare(Env{Cwd: "/"}, Input{Text: args})
		if err == nil && (!json.Valid(call.Args) || len(call.Display) > 210) {
			t.Fatalf("got %s, %q", call.Args, call.Display)
		}
	})
}
