package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const asking = `
version: 1
default: ask
shell: {opaque: ask}
rules:
  - {id: push, effect: ask, argv: [git, push]}
  - {id: tag, effect: ask, argv: [git, tag], max_scope: once}
  - {id: clone, effect: ask, argv: [git, clone], max_scope: session}
  - {id: no-rm, effect: deny, argv: [rm]}
  - {id: no-secrets, effect: deny, path: ["secrets/**"]}
  - {id: reads, effect: allow, argv: [[ls, cat]]}
  - {id: agents, effect: ask, tool: [spawn_agent, exec_command], args: {/role: [root]}}
  - {id: gen, effect: ask, path: ["gen/**"]}
`

// parsed returns a rule of an answer.
func parsed(t testing.TB, p *Policy, rule string) Proposal {
	t.Helper()
	pr, err := p.ParseProposal(json.RawMessage(rule))
	if err != nil {
		t.Fatalf("%s: %v", rule, err)
	}
	return pr
}

func TestAnswersTurnQuestionsIntoAllowsAndNothingElse(t *testing.T) {
	p := load(t, asking)
	grants := &Grants{}
	for _, rule := range []string{
		`{"id":"p","effect":"allow","argv":["git","push","origin"]}`, `{"argv":["rm"]}`, `{"argv":["git","tag"]}`, `{"argv":["git","clone"]}`,
		`{"path":["**"]}`, `{"argv":["make"],"agent":["/root/a"]}`, `{"host":["x.org:443"]}`, `{"mcp":{"server":"s","tool":["get_*"]}}`, `{"tool":["spawn_agent"]}`,
		`{"argv":["bash","-lc","make $(cat f)\nls"],"argv_exact":true}`,
	} {
		if err := grants.Add(parsed(t, p, rule), ScopeSession); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		call Call
		want Effect
		by   string
	}{
		{run("git push origin main"), Allow, byGrant}, {run("git push other"), Ask, byPolicy}, {run("git push"), Ask, byPolicy},
		{run("git push origin && ls"), Allow, byGrant}, {run("git push origin && make"), Ask, byDefault}, {run("timeout 5 git push origin"), Allow, byGrant},
		{run("git push origin; rm x"), Deny, byPolicy}, {run("rm x"), Deny, byPolicy}, {run("git push origin $(rm x)"), Deny, byPolicy},
		{run("git push origin $(date)"), Ask, byDefault}, {run("GIT_SSH=x git push origin"), Ask, byPolicy}, {run("git $x origin"), Deny, byPolicy},
		{run("git push origin > secrets/x"), Deny, byPolicy}, {run("git push origin > gen/x"), Allow, byGrant},
		{run("git tag x"), Ask, byPolicy}, {run("git clone x"), Allow, byGrant},
		{run("make $(cat f)\nls"), Allow, byGrant}, {run("make $(cat f)\nls x"), Ask, byDefault},
		{Call{Actions: []Action{Exec("/w/sub", "bash", "-lc", "make $(cat f)\nls")}}, Ask, byDefault},
		{Call{Agent: "/root/a", Actions: []Action{Exec("/w", "make")}}, Allow, byGrant}, {run("make"), Ask, byDefault},
		{Call{Actions: []Action{Write("/w/gen/a", "")}}, Allow, byGrant}, {Call{Actions: []Action{Write("/w/gen/a", "/w/secrets/a")}}, Deny, byPolicy},
		{Call{Actions: []Action{Write("/w/gen/a", "/etc/a")}}, Deny, bySandbox}, {Call{Actions: []Action{Write("/w/.git/a", "")}}, Deny, bySandbox},
		{Call{Actions: []Action{{Kind: KindHost, Host: "x.org:443"}}}, Allow, byGrant}, {Call{Actions: []Action{{Kind: KindHost, Host: "x.org:80"}}}, Ask, byDefault},
		{Call{Actions: []Action{{Kind: KindMCP, Server: "s", Tool: "get_x"}}}, Allow, byGrant}, {Call{Actions: []Action{{Kind: KindMCP, Server: "s", Tool: "put_x"}}}, Ask, byDefault},
		{spawn(`{"role":"root"}`), Allow, byGrant},
	} {
		c.call.Grants = grants
		v := p.Decide(c.call)
		if v.Effect != c.want || c.want != Allow && v.DecidedBy != c.by {
			t.Errorf("%+v: got %s by %s %q (%s), want %s by %s", c.call.Actions, v.Effect, v.DecidedBy, v.RuleID, v.Reason, c.want, c.by)
		}
		if c.by == byGrant && !slices.ContainsFunc(v.Parts, func(part Part) bool { return part.DecidedBy == byGrant && part.RuleID != "" }) {
			t.Errorf("%+v: no part names the answer: %+v", c.call.Actions, v.Parts)
		}
	}
	c := run("git push origin main")
	c.Grants = grants
	if v := p.Decide(c); v.RuleID != "p" || v.DecidedBy != byGrant || v.Reason != "" {
		t.Errorf("got %+v", v)
	}
	if v := p.Decide(run("git push origin main")); v.Effect != Ask {
		t.Error("an answer of one session holds in another")
	}
}

func TestAnAnswerDoesNotVouchForWhatIsHidden(t *testing.T) {
	p := load(t, "version: 1\ndefault: allow\nrules: [{id: push, effect: ask, argv: [git, push]}]")
	grants := &Grants{}
	for _, rule := range []string{`{"argv":["bash"]}`, `{"argv":["git"]}`, `{"argv":["bash","build.sh"]}`} {
		if err := grants.Add(parsed(t, p, rule), ScopeSession); err != nil {
			t.Fatal(err)
		}
	}
	for script, want := range map[string]Effect{"bash other.sh": Ask, "git p": Ask, "bash build.sh": Allow, "git push": Allow} {
		c := run(script)
		if c.Grants = grants; p.Decide(c).Effect != want {
			t.Errorf("%q: want %s", script, want)
		}
	}
}

func TestAnswersOfASessionHoldInItsChildrenAndNotInItsParent(t *testing.T) {
	p := load(t, asking)
	parent := &Grants{}
	child := &Grants{Parent: parent}
	if err := parent.Add(parsed(t, p, `{"argv":["make"]}`), ScopeAlways); err != nil {
		t.Fatal(err)
	}
	pr := parsed(t, p, `{"argv":["go","test"]}`)
	pr.CorrelationID = "ap7"
	if err := child.Add(pr, ScopeSession); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string][2]Effect{"make": {Allow, Allow}, "go test": {Ask, Allow}} {
		for i, g := range []*Grants{parent, child} {
			c := run(script)
			if c.Grants = g; p.Decide(c).Effect != want[i] {
				t.Errorf("%q in session %d: want %s", script, i, want[i])
			}
		}
	}
	got := child.Rules()
	want := []Grant{
		{ID: pr.ID, Scope: "session", Rule: Rule{"id": pr.ID, "effect": "allow", "argv": []any{"go", "test"}}, CorrelationID: "ap7"},
		{ID: got[1].ID, Scope: "always", Rule: Rule{"id": got[1].ID, "effect": "allow", "argv": []any{"make"}}, Inherited: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || child.Len() != 2 || parent.Len() != 1 {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	var none *Grants
	if none.Len() != 0 || none.Rules() != nil {
		t.Error("no answers are some")
	}
}

func TestAnswersThatCannotBeHeldAreRefused(t *testing.T) {
	p := load(t, asking)
	g := &Grants{}
	pr := parsed(t, p, `{"argv":["make"],"max_scope":"session"}`)
	for name, err := range map[string]error{
		"once": g.Add(pr, ScopeOnce), "nothing": g.Add(pr, ""), "too long": g.Add(pr, ScopeAlways), "unparsed": g.Add(Proposal{ID: "x"}, ScopeSession),
	} {
		if err == nil {
			t.Errorf("%s was held", name)
		}
	}
	for range 2 {
		if err := g.Add(pr, ScopeSession); err != nil {
			t.Fatal(err)
		}
	}
	if g.Len() != 1 {
		t.Errorf("one answer is held %d times", g.Len())
	}
}

func TestRulesOfAnswersAreReadStrictly(t *testing.T) {
	p := load(t, asking)
	for rule, part := range map[string]string{
		`{"effect":"deny","argv":["x"]}`: "only allow", `{"effect":"ask","argv":["x"]}`: "only allow", `{"argvv":["x"]}`: `unknown key "argvv"`, `{}`: "matches nothing",
		`[]`: "no JSON object", `null`: "no JSON object", ``: "no JSON object", `{"argv":["x"]`: "no JSON object", `{"argv":["x"],"argv":["y"]}`: "given twice",
		`{"argv":["x"],"ARGV":["y"]}`: "unknown key", `{"argv":["x"],"network":true}`: "cannot set", `{"argv":["x"],"sandbox":"off"}`: "cannot set",
		`{"argv":["x"],"timeout":"5s"}`: "cannot set", `{"argv":[]}`: "list of words", `{"argv":[null]}`: "list of words", `{"path":["../x"]}`: "leaves the workspace",
		`{"tool":["nope"]}`: "unknown tool", `{"argv":["x"],"path":["y"]}`: "mixes", `{"id":7,"argv":["x"]}`: "expected a text", `{"argv":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`: "deeply",
		`{"argv":["` + strings.Repeat("x", 70_000) + `"]}`: "longer", `{"argv":["x"]} {}`: "no JSON object", `{"args":{"/a":["x"],"/a":["y"]}}`: "given twice",
	} {
		_, err := p.ParseProposal(json.RawMessage(rule))
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%.80s: got %v, want %q", rule, err, part)
		}
	}
	if pr := parsed(t, p, `{"argv":["python3"]}`); !pr.Wide || pr.ID == "" {
		t.Errorf("got %+v", pr)
	}
	if one, two := parsed(t, p, `{"argv":["x"]}`), parsed(t, p, `{"argv":["x"]}`); one.ID != two.ID {
		t.Error("one rule has two ids")
	}
}

func proposals(prs []Proposal) []string {
	var out []string
	for _, pr := range prs {
		line, err := json.Marshal(pr.Rule)
		text := string(line)
		if err != nil {
			text = err.Error()
		}
		text = strings.Replace(text, `"id":"`+pr.ID+`","effect":"allow",`, "", 1)
		if pr.Wide {
			text += " wide"
		}
		if pr.CoversCall {
			text += " whole"
		}
		if pr.MaxScope != "" {
			text += " " + pr.MaxScope
		}
		out = append(out, text)
	}
	return out
}

func TestProposedRulesAreSmallAndAnswerTheQuestion(t *testing.T) {
	p := load(t, asking)
	const whole = `{"argv":["bash","-lc","SCRIPT"],"argv_exact":true} whole session`
	for _, c := range []struct {
		script string
		want   []string
	}{
		{"git push origin main", []string{`{"argv":["git","push","origin","main"],"argv_exact":true} whole`,
			`{"argv":["git","push"],"argv_none":["--output*","--ext-diff","--textconv","--exec*","--upload-pack*","--receive-pack*","--force*","-f","+*"]} whole`, whole}},
		{"git push --force", []string{`{"argv":["git","push","--force"],"argv_exact":true} whole`, whole}},
		{"npm run build -- --x", []string{`{"argv":["npm","run","build","--","--x"],"argv_exact":true} whole`, `{"argv":["npm","run","build"]} whole`, whole}},
		{"python3 x.py", []string{`{"argv":["python3","x.py"],"argv_exact":true} whole`, whole}},
		{"git", []string{`{"argv":["git"],"argv_exact":true} whole`, whole}},
		{"docker run x", []string{`{"argv":["docker","run","x"],"argv_exact":true} whole`, whole}},
		{"gofmt -l .", []string{`{"argv":["gofmt","-l","."],"argv_exact":true} whole`, `{"argv":["gofmt"]} wide whole`, whole}},
		{"./build.sh a", []string{`{"argv":["/w/build.sh","a"],"argv_exact":true} whole`, `{"argv":["/w/build.sh"]} wide whole`, whole}},
		{"echo '*' 'a[b'", []string{`{"argv":["echo","\\*","a\\[b"],"argv_exact":true} whole`, `{"argv":["echo"]} wide whole`, whole}},
		{"make $(cat f)", []string{whole}},
		{"x=1; \"$x\" y", []string{whole}},
		{"make x && go vet ./...", []string{`{"argv":["make","x"],"argv_exact":true}`, `{"argv":["make","x"]}`, `{"argv":["go","vet","./..."],"argv_exact":true}`,
			`{"argv":["go","vet"],"argv_none":["-exec*","--exec*","-toolexec*","--toolexec*","-o*","--o*"]}`, whole}},
		{"git tag x", nil}, {"make; git tag x", nil}, {"rm x; make", nil}, {"ls", nil},
	} {
		call := run(c.script)
		v := p.Decide(call)
		script, err := json.Marshal(escapeWord(c.script))
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.want {
			c.want[i] = strings.Replace(c.want[i], `"SCRIPT"`, string(script), 1)
		}
		if diff := cmp.Diff(c.want, proposals(p.Propose(call, v))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.script, diff)
		}
	}
	clone := run("git clone x")
	for _, pr := range p.Propose(clone, p.Decide(clone)) {
		if pr.MaxScope != "session" {
			t.Errorf("got %+v", pr)
		}
	}
}

func TestProposedRulesForFilesHostsServersAndTools(t *testing.T) {
	p := load(t, asking, func(s *Sources) { s.Roots.Writable = append(s.Roots.Writable, "/data") })
	for _, c := range []struct {
		name string
		call Call
		want []string
	}{
		{"file", Call{Actions: []Action{Write("/w/gen/a[1].go", "")}}, []string{`{"path":["/w/gen/a\\[1].go"],"access":["write"]} whole`, `{"path":["/w/gen/**"],"access":["write"]} whole`}},
		{"linked file", Call{Actions: []Action{Write("/w/gen/a", "/data/b")}}, []string{`{"path":["/w/gen/a","/data/b"],"access":["write"]} whole`, `{"path":["/w/gen/**","/data/**"],"access":["write"]} whole`}},
		{"outside", Call{Actions: []Action{Read("/etc/x", "")}}, []string{`{"path":["/etc/x"],"access":["read"]} whole`, `{"path":["/etc/**"],"access":["read"]} wide whole`}},
		{"patch", Call{Actions: []Action{Write("/w/gen/a", ""), Delete("/w/x/b", "")}}, []string{
			`{"path":["/w/gen/a","/w/x/b"],"access":["write","delete"]} whole`, `{"path":["/w/gen/a"],"access":["write"]}`, `{"path":["/w/gen/**"],"access":["write"]}`,
			`{"path":["/w/x/b"],"access":["delete"]}`, `{"path":["/w/x/**"],"access":["delete"]}`,
		}},
		{"host", Call{Actions: []Action{{Kind: KindHost, Host: "Example.com.:443"}}}, []string{`{"host":["example.com:443"]} whole`}},
		{"address", Call{Actions: []Action{{Kind: KindHost, Host: "[::1]:80"}}}, []string{`{"host":["[::1]:80"]} whole`}},
		{"server", Call{Actions: []Action{{Kind: KindMCP, Server: "g*", Tool: "get_x"}}}, []string{`{"mcp":{"server":"g\\*","tool":["get_x"]}} whole`}},
		{"tool", spawn(`{"role":"root"}`), []string{`{"tool":["spawn_agent"],"args":{"/role":["root"]}} whole`, `{"tool":["spawn_agent"]} whole`}},
		{"tool with a list", spawn(`{"role":["root"]}`), []string{`{"tool":["spawn_agent"]} whole`}},
		{"command tool", Call{Tool: "exec_command", Args: json.RawMessage(`{"role":"root"}`), Actions: []Action{Exec("/w", "ls")}}, []string{
			`{"tool":["exec_command"],"args":{"/role":["root"]}} whole`, `{"tool":["exec_command"]} wide whole`,
		}},
		{"root", Call{Actions: []Action{Read("/", "")}}, nil},
		{"refused", Call{Actions: []Action{Write("/w/secrets/x", ""), Write("/w/gen/x", "")}}, nil},
	} {
		if diff := cmp.Diff(c.want, proposals(p.Propose(c.call, p.Decide(c.call)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestEveryProposalIsARuleThatLoads(t *testing.T) {
	p := load(t, asking)
	for _, script := range append(slices.Clone(hidden), plain...) {
		call := run(script)
		for _, pr := range p.Propose(call, p.Decide(call)) {
			line, err := json.Marshal(pr.Rule)
			if err != nil {
				t.Fatal(err)
			}
			again, err := p.ParseProposal(line)
			if err != nil || again.ID != pr.ID || !again.Rule.same(pr.Rule) || pr.Title == "" {
				t.Fatalf("%q: %s comes back as %+v (%v)", script, line, again, err)
			}
			text, err := yaml.Marshal(map[string]any{"version": 1, "rules": []Rule{pr.Rule}})
			if err != nil {
				t.Fatal(err)
			}
			if q := load(t, string(text)); len(q.Rules()) != 1 {
				t.Errorf("%s holds no rule", text)
			}
		}
	}
}

func TestSuggestedRulesHelpInTheFile(t *testing.T) {
	p := load(t, `
version: 1
default: deny
rules:
  - {id: push, effect: ask, argv: [git, push]}
  - {id: no-rm, effect: deny, argv: [rm], reason: Files stay.}
  - {id: ls, effect: allow, argv: [ls]}
`)
	for _, c := range []struct {
		call  Call
		want  []string
		stuck []string
	}{
		{run("ls | go vet ./... && npm ci"), []string{`{"argv":["go","vet"],"argv_none":["-exec*","--exec*","-toolexec*","--toolexec*","-o*","--o*"]}`, `{"argv":["npm","ci"]}`}, nil},
		{run("python3 x.py"), []string{`{"argv":["python3","x.py"],"argv_exact":true} whole`}, nil},
		{run("gofmt -l ."), []string{`{"argv":["gofmt","-l","."],"argv_exact":true} whole`}, nil},
		{run("rm x; go vet"), []string{`{"argv":["go","vet"],"argv_none":["-exec*","--exec*","-toolexec*","--toolexec*","-o*","--o*"]}`}, []string{"policy no-rm 6"}},
		{run("git push"), nil, []string{"policy push 5"}},
		{run("$x"), nil, []string{"policy no-rm 6"}},
		{Call{Actions: []Action{Write("/w/src/a", "")}}, []string{`{"path":["src/**"],"access":["write"]} whole`}, nil},
		{Call{Actions: []Action{Write("/w/a", "")}}, []string{`{"path":["a"],"access":["write"]} whole`}, nil},
		{Call{Actions: []Action{Write("/etc/a", "")}}, nil, []string{"sandbox  0"}},
		{Call{Actions: []Action{{Kind: KindMCP, Server: "s", Tool: "t"}}}, []string{`{"mcp":{"server":"s","tool":["t"]}} whole`}, nil},
	} {
		got, stuck := p.ProposeDenied(c.call, p.Decide(c.call))
		var at []string
		for _, o := range stuck {
			at = append(at, strings.Join([]string{o.DecidedBy, o.RuleID, string(rune('0' + o.Line))}, " "))
		}
		if diff := cmp.Diff(c.want, proposals(got)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.call.Actions, diff)
		}
		if diff := cmp.Diff(c.stuck, at); diff != "" {
			t.Errorf("%+v obstacles (-want +got):\n%s", c.call.Actions, diff)
		}
	}
}

func TestAnswersMayBeGivenWhileOthersAreJudged(t *testing.T) {
	p := load(t, asking)
	g := &Grants{}
	rules := []Proposal{parsed(t, p, `{"argv":["make"]}`), parsed(t, p, `{"argv":["go"]}`), parsed(t, p, `{"argv":["npm"]}`)}
	var group sync.WaitGroup
	for _, pr := range rules {
		group.Go(func() {
			if err := g.Add(pr, ScopeSession); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			for range 20 {
				c := run("make; go x; npm ci")
				c.Grants = g
				p.Decide(c)
				g.Rules()
			}
		})
	}
	group.Wait()
	c := run("make; go x; npm ci")
	if c.Grants = g; p.Decide(c).Effect != Allow {
		t.Error("an answer is lost")
	}
}

func FuzzParseProposal(f *testing.F) {
	for _, s := range []string{`{"argv":["git","push"],"argv_exact":true}`, `{"id":"a","effect":"allow","path":["src/**"],"access":["write"]}`, `{"mcp":{"server":"s","annotations":{"readOnlyHint":true}}}`,
		`{"args":{"/a":["x"]},"except":[{"args":{"/b":"y"}}]}`, `{"argv":[["a","b"],"*"],"agent":"/root","mode":"tty"}`, `{"host":"*.x:1","reason":"\ud83d\ude00"}`} {
		f.Add([]byte(s))
	}
	p := load(f, asking)
	f.Fuzz(func(t *testing.T, data []byte) {
		pr, err := p.ParseProposal(data)
		if err != nil {
			return
		}
		line, err := json.Marshal(pr.Rule)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", data, err)
		}
		again, err := p.ParseProposal(line)
		if err != nil || !again.Rule.same(pr.Rule) {
			t.Fatalf("%q comes back as %s (%v)", data, line, err)
		}
		c := run("rm x")
		c.Grants = &Grants{}
		if err := c.Grants.Add(pr, ScopeSession); err == nil && p.Decide(c).Effect != Deny {
			t.Errorf("%s changes a refusal", line)
		}
	})
}

func TestManyQuestionsCostBoundedWork(t *testing.T) {
	p := load(t, "version: 1\ndefault: ask")
	var patch Call
	for i := range 2000 {
		patch.Actions = append(patch.Actions, Write("/w/src/"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+"/f", ""))
	}
	script := run(strings.Repeat("make a; go vet; npm ci; x y\n", 500) + "z $(z)")
	for name, c := range map[string]Call{"patch": patch, "script": script} {
		v := p.Decide(c)
		prs := p.Propose(c, v)
		if len(prs) == 0 || len(prs) > maxProposals {
			t.Errorf("%s: %d proposals", name, len(prs))
		}
		denied, _ := p.ProposeDenied(c, v)
		if len(denied) == 0 || len(denied) > maxTried {
			t.Errorf("%s: %d suggestions", name, len(denied))
		}
	}
}

func FuzzWordGlob(f *testing.F) {
	for _, s := range []string{"--output=*", `a\b[c`, "[[", "[", "", "x?", "\\", "é[!a-z]"} {
		f.Add(s, "x")
	}
	f.Fuzz(func(t *testing.T, word, other string) {
		p, err := newPattern(literalGlob(word))
		if err != nil {
			t.Fatalf("%q is no glob: %v", literalGlob(word), err)
		}
		if !p.match(word) || word != other && p.match(other) {
			t.Errorf("the glob %q of exactly %q matches %t %t", p.text, word, p.match(word), p.match(other))
		}
	})
}

// TestAWishOfAModelIsOfferedOnlyIfItIsNoWayRound: the model names the beginning of
// commands that it would like to run outside the sandbox.
func TestAWishOfAModelIsOfferedOnlyIfItIsNoWayRound(t *testing.T) {
	p := load(t, `version: 1
default: ask
rules:
  - {id: ls, effect: allow, argv: [ls]}
  - {id: tags, effect: ask, argv: [git, tag]}
  - {id: once, effect: ask, argv: [git, clone], max_scope: once}
  - {id: no-rm, effect: deny, argv: [rm]}
`)
	for _, c := range []struct {
		script string
		words  []string
		want   bool
	}{
		{"go test ./...", []string{"go", "test"}, true},
		{"go test ./... && go test x", []string{"go", "test"}, true},
		{"git push origin x", []string{"git", "push"}, true},
		{"git push origin x", []string{"git"}, false},
		{"/usr/bin/git push", []string{"/usr/bin/git"}, false},
		{"go test ./... && make", []string{"go", "test"}, false},
		{"go test ./...", nil, false},
		{"go test ./...", []string{"go", "*"}, false},
		{"go test ./...", []string{"*"}, false},
		{"python3 x.py", []string{"python3"}, false},
		{"bash -c ls", []string{"bash", "-c"}, false},
		{"env x", []string{"env"}, false},
		{"sudo x", []string{"sudo"}, false},
		{"git tag x", []string{"git", "tag"}, false},
		{"git clone x", []string{"git", "clone"}, false},
		{"rm x", []string{"rm"}, false},
		{"make $(cat f)", []string{"make"}, false},
	} {
		pr, ok := p.ProposePrefix(run(c.script), c.words)
		if ok != c.want || ok && (!pr.Wish || !pr.CoversCall || pr.Title == "") {
			t.Errorf("%q with %q: %t, %+v", c.script, c.words, ok, pr)
		}
	}
}
