package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/fault"
	"drover/tools/policy"
)

// pool loads a converted policy as a run would.
func pool(t *testing.T, r Result) *policy.Policy {
	t.Helper()
	p, err := load(r.Policy)
	if err != nil {
		t.Fatalf("the result does not load: %v\n%s", err, r.Policy)
	}
	for _, c := range p.Tests() {
		if v := p.Decide(p.CallOf(c)); v.Effect != c.Expect || v.RuleID != c.Rule {
			t.Errorf("its test %q: got %s by %q, want %s by %q", c.Exec, v.Effect, v.RuleID, c.Expect, c.Rule)
		}
	}
	return p
}

func effects(p *policy.Policy, scripts ...string) map[string]policy.Effect {
	out := map[string]policy.Effect{}
	for _, s := range scripts {
		out[s] = p.Decide(policy.Call{Tool: "exec_command", Actions: []policy.Action{policy.Exec(workspace, "bash", "-c", s)}}).Effect
	}
	return out
}

func codexOf(t *testing.T, text string) Result {
	t.Helper()
	r, err := Codex([]File{{Name: "x.rules", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPrefixRulesKeepTheirDecisions(t *testing.T) {
	r := codexOf(t, `
# what git may do
prefix_rule(
    pattern = ["git", ["status", "log"]],
    match = ["git status --short", ["git", "log"]],
    not_match = ["git push"],
)
prefix_rule(pattern = ["git", "push"], decision = "prompt", justification = "It leaves the machine.")
prefix_rule(["rm", "-rf"], decision = "forbidden")
prefix_rule(pattern = ["find", "*.go"], decision = "allow", match = None)
host_executable(name = "git", paths = ["/opt/git/bin/git"])
`)
	p := pool(t, r)
	want := map[string]policy.Effect{
		"git status -s": "allow", "git log; git status": "allow", "git push origin": "ask", "git commit": "ask", "rm -rf x": "deny", "rm x": "ask",
		"/opt/git/bin/git log": "allow", "/tmp/git log": "ask", "find '*.go' -x": "allow", "find a.go": "ask",
	}
	var scripts []string
	for s := range want {
		scripts = append(scripts, s)
	}
	if diff := cmp.Diff(want, effects(p, scripts...)); diff != "" {
		t.Errorf("effects (-want +got):\n%s\n%s", diff, r.Policy)
	}
	if r.Lost() != 0 || len(p.Tests()) < 4 {
		t.Errorf("%d lost, %d tests:\n%s", r.Lost(), len(p.Tests()), r.Policy)
	}
	for _, part := range []string{"# x.rules:3: prefix_rule git [status|log]", "id: allow-prefix-rule-git-status-log", "reason: It leaves the machine.", "{exec: git status --short, expect: allow, rule: allow-prefix-rule-git-status-log}"} {
		if !strings.Contains(string(r.Policy), part) {
			t.Errorf("%q is missing:\n%s", part, r.Policy)
		}
	}
}

func TestNetworkRulesAreNotWidened(t *testing.T) {
	r := codexOf(t, `
network_rule(host = "API.Example.com:443", protocol = "https")
network_rule(host = "evil.example", protocol = "socks5_tcp", decision = "deny", justification = "no")
network_rule(host = "proxy.example", protocol = "socks5_tcp")
`)
	p := pool(t, r)
	got := map[string]policy.Effect{}
	for _, host := range []string{"api.example.com:443", "api.example.com:80", "evil.example:1", "proxy.example:1080"} {
		got[host] = p.Decide(policy.Call{Tool: "x", Actions: []policy.Action{{Kind: policy.KindHost, Host: host}}}).Effect
	}
	want := map[string]policy.Effect{"api.example.com:443": "allow", "api.example.com:80": "ask", "evil.example:1": "deny", "proxy.example:1080": "ask"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r.Lost() != 1 || len(r.Notes) != 2 || p.Network() {
		t.Errorf("got notes %v", r.Notes)
	}
	if !strings.Contains(string(r.Policy), "# Not mapped:\n#   x.rules:4: network_rule proxy.example socks5_tcp: ") {
		t.Errorf("the loss is not in the policy:\n%s", r.Policy)
	}
}

func TestRuleFilesThatCannotBeReadAreErrorsWithALine(t *testing.T) {
	for name, tt := range map[string]struct{ text, why string }{
		"syntax":               {"\nprefix_rule(pattern = [)", "line 2"},
		"computed":             {"x = 1", "line 1: only calls"},
		"computed pattern":     {"prefix_rule(pattern = [\"a\"] + [\"b\"])", "must be a list of literals"},
		"computed word":        {"prefix_rule(pattern = [\"a\" + \"b\"])", "must be a literal string"},
		"number":               {"prefix_rule(pattern = [1])", "must be a literal string"},
		"bytes":                {"prefix_rule(pattern = [b\"a\"])", "must be a literal string"},
		"unknown call":         {"\n\nprefix_rules(pattern = [])", "line 3: unknown call prefix_rules"},
		"unknown argument":     {"prefix_rule(patern = [])", `no argument "patern"`},
		"argument twice":       {"prefix_rule([\"a\"], pattern = [\"b\"])", `"pattern" twice`},
		"second positional":    {"prefix_rule([\"a\"], \"allow\")", "name = value"},
		"no pattern":           {"prefix_rule()", `needs the argument "pattern"`},
		"empty pattern":        {"prefix_rule(pattern = [])", "needs a pattern"},
		"empty alternatives":   {"prefix_rule(pattern = [\"a\", []])", "alternatives in a pattern is empty"},
		"unknown decision":     {"prefix_rule(pattern = [\"a\"], decision = \"deny\")", `unknown decision "deny"`},
		"blank justification":  {"prefix_rule(pattern = [\"a\"], justification = \" \")", "justification is empty"},
		"example not matched":  {"prefix_rule(pattern = [\"git\", \"push\"],\n match = [\"git pull\"])", "does not match its example git pull"},
		"counterexample":       {"prefix_rule(pattern = [\"git\"], not_match = [[\"git\", \"x y\"]])", "the rule matches git 'x y'"},
		"broken example":       {"prefix_rule(pattern = [\"git\"], match = [\"git 'x\"])", "a quote is not closed"},
		"host with scheme":     {"network_rule(host = \"https://x\", protocol = \"https\")", "not a plain name"},
		"host with wildcard":   {"network_rule(host = \"*.x\", protocol = \"https\")", "not a plain name"},
		"unknown protocol":     {"network_rule(host = \"x\", protocol = \"ftp\")", `unknown protocol "ftp"`},
		"executable is a path": {"host_executable(name = \"/bin/git\", paths = [])", "bare name"},
		"path of another":      {"host_executable(name = \"git\", paths = [\"/bin/hg\"])", "no absolute path of git"},
		"load":                 {"load(\"a\", \"b\")", "only calls"},
		"not text":             {"\xff\xfe", "not UTF-8"},
		"too deep":             {strings.Repeat("[", 1000), "nested too deep"},
		"method":               {"a.b()", "only calls"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Codex([]File{{Name: "x.rules", Data: []byte(tt.text)}})
			f := fault.From(err)
			if err == nil || f.Exit != fault.Config || !strings.Contains(f.Why, tt.why) {
				t.Errorf("got %v, want %q", err, tt.why)
			}
		})
	}
}

func TestRulesOfSeveralFilesArePooled(t *testing.T) {
	r, err := Codex([]File{
		{Name: "a.rules", Data: []byte(`prefix_rule(pattern = ["git"])`)},
		{Name: "b.rules", Data: []byte(`prefix_rule(pattern = ["git", "push"], decision = "forbidden")` + "\n" + `prefix_rule(pattern = ["git"])`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := pool(t, r)
	if got := effects(p, "git push", "git log"); got["git push"] != "deny" || got["git log"] != "allow" || len(p.Rules()) != 2 {
		t.Errorf("got %v, %d rules", got, len(p.Rules()))
	}
	if !strings.Contains(string(r.Policy), "# b.rules:1: ") {
		t.Errorf("the file is not named:\n%s", r.Policy)
	}
}

// TestWhatIsStricterHereIsSaid takes a rule whose command a shell hides.
func TestWhatIsStricterHereIsSaid(t *testing.T) {
	r := codexOf(t, `prefix_rule(pattern = ["env", "FOO=1", "make"])`+"\n"+`prefix_rule(pattern = ["bash", "-c", "ls"])`+"\n")
	p := pool(t, r)
	for s, e := range effects(p, "env FOO=1 make", "bash -c ls") {
		if e == "allow" {
			continue
		}
		if !slices.ContainsFunc(r.Notes, func(n Note) bool { return !n.Lost && strings.Contains(n.Why, "is not covered") }) {
			t.Errorf("%s is %s, and no note says so: %v", s, e, r.Notes)
		}
	}
}

func FuzzCodex(f *testing.F) {
	for _, seed := range []string{
		`prefix_rule(pattern = ["git", ["status", "log"]], match = ["git status"], not_match = [["git", "push"]])`,
		`prefix_rule(["rm"], decision = "forbidden", justification = "no")`,
		`network_rule(host = "x.example", protocol = "https", decision = "prompt")`,
		`host_executable(name = "git", paths = ["/usr/bin/git"])`,
		"prefix_rule(pattern = [\"\u202e*[\\x1b\"], match = [])", `prefix_rule(pattern = ["[", "a[b"])`, `"""text"""`, "((((", "-" + strings.Repeat("-", 100),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Codex([]File{{Name: "x.rules", Data: []byte(text)}})
		if err != nil {
			if fault.From(err).Exit != fault.Config {
				t.Fatalf("no fault of the file: %v", err)
			}
			return
		}
		checkResult(t, r)
	})
}

// checkResult holds a result against what every result promises: it loads, its
// tests hold, and it is text that a terminal can show.
func checkResult(t *testing.T, r Result) {
	p, err := load(r.Policy)
	if err != nil {
		t.Fatalf("the result does not load: %v\n%s", err, r.Policy)
	}
	for _, c := range p.Tests() {
		if v := p.Decide(p.CallOf(c)); v.Effect != c.Expect || v.RuleID != c.Rule {
			t.Fatalf("its test %q: got %s by %q\n%s", c.Exec, v.Effect, v.RuleID, r.Policy)
		}
	}
	for _, c := range string(r.Policy) {
		if c < ' ' && c != '\n' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			t.Fatalf("a control character in the policy: %q", r.Policy)
		}
	}
}
