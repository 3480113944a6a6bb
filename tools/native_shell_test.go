package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/tools/policy"
)

func TestLocalShellRunsTheActionOfTheAPI(t *testing.T) {
	env, _ := commandEnv(t)
	if err := os.Mkdir(filepath.Join(env.Cwd, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	call, err := localShell.Prepare(env, Input{Text: `{"type":"exec","command":["sh","-c","echo $A$B; pwd"],"env":{"B":"2","A":"1"},"timeout_ms":20000,"working_directory":"sub"}`})
	if err != nil {
		t.Fatal(err)
	}
	// The variables are part of what is judged.
	want := []policy.Action{policy.Exec(filepath.Join(env.Cwd, "sub"), "env", "A=1", "B=2", "sh", "-c", "echo $A$B; pwd")}
	if diff := cmp.Diff(want, call.Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	res, err := call.Run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Output   string
		Metadata struct {
			ExitCode int `json:"exit_code"`
		}
	}
	if err := json.Unmarshal([]byte(res.Text), &got); err != nil || res.IsError || !strings.HasPrefix(got.Output, "12\n") || !strings.HasSuffix(got.Output, "/sub\n") {
		t.Errorf("got %+v, %v", res, err)
	}
	if spec := localShell.Spec(); spec.Kind != LocalShell || spec.Parallel || !spec.Command || Find("local_shell") == nil {
		t.Errorf("spec %+v", spec)
	}
}

func TestLocalShellRefuses(t *testing.T) {
	env, rec := commandEnv(t)
	for args, want := range map[string]string{
		`{"command":[]}`:                                   "command args are empty",
		`{}`:                                               "missing field `command`",
		`{"type":"click","command":["ls"]}`:                `the type "click" is unknown`,
		`{"command":["ls"],"user":"root"}`:                 "user is not offered",
		`{"command":["ls"],"env":{"A=B":"1"}}`:             "no name of a variable",
		`{"command":["A=1","ls"],"env":{"B":"1"}}`:         "holds =",
		`{"command":["apply_patch","x"],"timeout_ms":"1"}`: "timeout_ms",
	} {
		if _, err := localShell.Prepare(env, Input{Text: args}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", args, err, want)
		}
	}
	if len(rec.events) > 0 {
		t.Errorf("events %v", rec.events)
	}
}
