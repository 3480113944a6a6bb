package cmd

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// statusTask has one tool that asks an endpoint, with a credential.
func statusTask(url string) string {
	return "version: 1\nprompt: Is it up?\nmodel: script:model.jsonl\ntools:\n" +
		"  - {name: status, description: Asks whether it is up., url: '" + url + "', headers: {Authorization: STATUS_LINE}}\n"
}

// TestCredentialOfAToolReachesOnlyItsServer lets the server answer with what it
// got, and a command print its environment.
func TestCredentialOfAToolReachesOnlyItsServer(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, "up, said "+strings.TrimPrefix(got, "Bearer "))
	}))
	defer server.Close()
	p := newProcess(t, script(t, calls(m{"name": "status", "args": m{}}, execCall("env; echo $STATUS_LINE")), says("It is up.")),
		"run", "-f", "task.yaml", "--yolo", "--events", "full")
	p.lay(map[string]string{"task.yaml": statusTask(server.URL)})
	p.cmd.Env = append(p.cmd.Env, "STATUS_LINE=Bearer canary1234")
	stdout, exit := p.output()
	if exit != 0 || got != "Bearer canary1234" || !bytes.Contains(stdout, []byte("up, said ")) {
		t.Errorf("exit %d, the server got %q: %s", exit, got, p.stderr.String())
	}
	if bytes.Contains(stdout, []byte("STATUS_LINE=")) {
		t.Error("a command has the variable")
	}
	for where, text := range p.everything(stdout) {
		if strings.Contains(text, "canary1234") {
			t.Errorf("the secret is in %s", where)
		}
	}
}

// TestToolWithAnEndpointNeedsItsHost allows the tool and not the host, and the
// other way round.
func TestToolWithAnEndpointNeedsItsHost(t *testing.T) {
	t.Parallel()
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	for _, c := range []struct {
		args []string
		exit int
	}{
		{nil, 10}, {[]string{"--allow", "tool:status"}, 10}, {[]string{"--allow", "host:127.0.0.1:*"}, 10},
		{[]string{"--allow", "tool:status", "--allow", "host:127.0.0.1:*"}, 0}, {[]string{"--mode", "plan", "--yolo"}, 0},
		{[]string{"--deny", "tool:status", "--yolo"}, 10},
	} {
		asked = false
		p := newProcess(t, script(t, calls(m{"name": "status", "args": m{}}), says("<proposed_plan>Ask.</proposed_plan>")),
			append([]string{"run", "-f", "task.yaml"}, c.args...)...)
		p.lay(map[string]string{"task.yaml": statusTask(server.URL)})
		p.cmd.Env = append(p.cmd.Env, "STATUS_LINE=canary1234")
		if _, exit := p.output(); exit != c.exit {
			t.Errorf("%v: exit %d, want %d: %s", c.args, exit, c.exit, p.stderr.String())
		}
		if want := c.exit == 0 && len(c.args) == 4; asked != want {
			t.Errorf("%v: asked is %v, want %v", c.args, asked, want)
		}
	}
}
