package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"drover/output/fault"
	"drover/runner/model"
	"drover/tools"
)

// world is a home, a project and an environment.
type world struct {
	home, project string
	env           map[string]string
	trust         bool
}

func newWorld(t *testing.T, user, project string) *world {
	t.Helper()
	w := &world{home: filepath.Join(t.TempDir(), "home"), project: t.TempDir(), env: map[string]string{}}
	w.env["XDG_CONFIG_HOME"] = w.home
	put(t, filepath.Join(w.home, "drover", fileName), user)
	put(t, filepath.Join(w.project, projectDir, fileName), project)
	return w
}

// put writes a file, unless text is empty.
func put(t *testing.T, path, text string) {
	t.Helper()
	if text == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) load() (*Config, error) {
	var environ []string
	for k, v := range w.env {
		environ = append(environ, k+"="+v)
	}
	return Load(Options{Getenv: func(k string) string { return w.env[k] }, Environ: environ, Cwd: w.project, TrustProject: w.trust})
}

func (w *world) mustLoad(t *testing.T) *Config {
	t.Helper()
	c, err := w.load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const everything = `model: ollama/x
sandbox: read-only
network: true
max_turns: 7
max_tool_calls: 8
max_tokens: 9000000000
max_cost: 1.5
timeout: 10m
idle_timeout: 90s
tool_timeout: 1m
background_terminal_max_timeout: 2m
on_ask: fail
approver: ask-ops --urgent
approval_timeout: 30s
on_deny: continue
max_denials: 3
tool_output_token_limit: 500
allow_login_shell: true
shell: /bin/zsh
shell_environment_policy:
  inherit: core
  ignore_default_excludes: false
  exclude: ["AWS_*"]
  set: {GoFlags: -mod=vendor, N: 1}
  include_only: ["*"]
  pass_keys: [My_Name]
redact: [My_Name]
format: text
color: never
ephemeral: true
providers:
  MyServer:
    api: chat
    base_url: http://localhost:1/v1
    api_key_env: MY_SERVER
    headers: {X-Team: Blue}
    ca_file: ca.pem
    proxy: http://p
    shell: shell
    replay_reasoning: never
    first_byte: 5s
    stream_idle: 6s
    max_attempts: 2
    models:
      Big.Model: {context_window: 1000, max_output_tokens: 10, input_price: 0, output_price: 2.5, cached_price: .1, shell: shell_command}
`

func TestUserFileSetsEverything(t *testing.T) {
	w := newWorld(t, everything, "")
	got := w.mustLoad(t)
	free, some, tenth := 0.0, 2.5, 0.1
	path := filepath.Join(w.home, "drover", fileName)
	want := &Config{
		Settings: Settings{
			Model: "ollama/x", Shell: "/bin/zsh", Sandbox: "read-only", Network: true, AllowLoginShell: true, Ephemeral: true,
			OnAsk: "fail", Approver: "ask-ops --urgent", ApprovalTimeout: 30 * time.Second, OnDeny: "continue", MaxTurns: 7, MaxToolCalls: 8, MaxTokens: 9000000000, MaxCost: 1.5, MaxDenials: 3,
			Timeout: 10 * time.Minute, IdleTimeout: 90 * time.Second, ToolTimeout: time.Minute, MaxPoll: 2 * time.Minute, ToolOutputTokenLimit: 500,
			Format: "text", Color: "never",
		},
		Providers: map[string]model.ProviderConfig{"MyServer": {
			API: "chat", BaseURL: "http://localhost:1/v1", APIKeyEnv: "MY_SERVER", Headers: map[string]string{"X-Team": "Blue"},
			CAFile: filepath.Join(w.home, "drover", "ca.pem"), Proxy: "http://p", Shell: "shell", ReplayReasoning: "never",
			FirstByte: 5 * time.Second, StreamIdle: 6 * time.Second, MaxAttempts: 2,
			Models: map[string]model.ModelConfig{"Big.Model": {ContextWindow: 1000, MaxOutputTokens: 10,
				InputPrice: &free, OutputPrice: &some, CachedPrice: &tenth, Shell: "shell_command"}},
		}},
		ShellEnvironment: tools.ShellEnvironment{Inherit: "core", DropSecretNames: true, Exclude: []string{"AWS_*"},
			Set: map[string]string{"GoFlags": "-mod=vendor", "N": "1"}, IncludeOnly: []string{"*"}, PassKeys: []string{"My_Name"}},
		Redact: []string{"My_Name"}, Files: []string{path},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestVariableOutranksProjectOutranksUser(t *testing.T) {
	w := newWorld(t, "model: user/m\nmax_turns: 50\ntimeout: 1h\nredact: [A]\n", "max_turns: 30\ntimeout: 30m\nredact: [B]\n")
	w.trust = true
	w.env["DROVER_TIMEOUT"] = "5m"
	w.env["DROVER_NETWORK"] = "true"
	w.env["DROVER_SANDBOX"] = ""
	w.env["DROVER_REDACT"] = "C, A"
	got := w.mustLoad(t)
	want := Settings{Model: "user/m", MaxTurns: 30, Timeout: 5 * time.Minute, Network: true}
	if d := cmp.Diff(want, got.Settings); d != "" {
		t.Errorf("settings (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Settings{Timeout: 5 * time.Minute, Network: true}, got.Env); d != "" {
		t.Errorf("variables (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"A", "B", "C"}, got.Redact); d != "" || got.Warnings != nil {
		t.Errorf("redact (-want +got):\n%s warnings %q", d, got.Warnings)
	}
}

func TestUntrustedProjectCanOnlyTighten(t *testing.T) {
	for _, c := range []struct {
		name, user, project string
		want                Settings
		leftOut             []string
	}{
		{"lower limits", "max_turns: 50", "max_turns: 10\nmax_cost: 1\ntimeout: 5m\nmax_tokens: 9", Settings{MaxTurns: 10, MaxCost: 1, Timeout: 5 * time.Minute, MaxTokens: 9}, nil},
		{"higher limits", "max_turns: 50\ntimeout: 1m", "max_turns: 60\ntimeout: 2m", Settings{MaxTurns: 50, Timeout: time.Minute}, []string{"max_turns", "timeout"}},
		{"higher than the defaults", "", "max_turns: 201\nmax_denials: 6\ntool_output_token_limit: 10001", Settings{}, []string{"max_turns", "max_denials", "tool_output_token_limit"}},
		{"below the defaults", "", "max_turns: 199\nmax_denials: 4\ntool_output_token_limit: 9", Settings{MaxTurns: 199, MaxDenials: 4, ToolOutputTokenLimit: 9}, nil},
		{"the same", "max_turns: 50", "max_turns: 50", Settings{MaxTurns: 50}, nil},
		{"stricter sandbox", "sandbox: off\nnetwork: true", "sandbox: workspace-write\nnetwork: false", Settings{Sandbox: "workspace-write"}, nil},
		{"looser sandbox", "", "sandbox: off\nnetwork: true\nallow_login_shell: true", Settings{}, []string{"sandbox", "network", "allow_login_shell"}},
		{"default sandbox", "", "sandbox: read-only", Settings{Sandbox: "read-only"}, nil},
		{"everything", "", everything, Settings{Sandbox: "read-only", MaxTurns: 7, MaxToolCalls: 8, MaxTokens: 9000000000, MaxCost: 1.5, MaxDenials: 3,
			Timeout: 10 * time.Minute, IdleTimeout: 90 * time.Second, ToolTimeout: time.Minute, ToolOutputTokenLimit: 500},
			[]string{"model", "network", "background_terminal_max_timeout", "on_ask", "approver", "approval_timeout", "on_deny", "allow_login_shell", "shell", "format", "color", "ephemeral", "shell_environment_policy", "redact", "providers"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newWorld(t, c.user, c.project).mustLoad(t)
			if d := cmp.Diff(c.want, got.Settings); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if len(got.Warnings) != len(c.leftOut) {
				t.Fatalf("warnings %q, want those of %q", got.Warnings, c.leftOut)
			}
			for i, name := range c.leftOut {
				if !strings.Contains(got.Warnings[i], ": "+name+" is left out: ") {
					t.Errorf("warning %q, want that of %s", got.Warnings[i], name)
				}
			}
			if got.Providers != nil || got.Redact != nil || got.ShellEnvironment.Set != nil {
				t.Errorf("an untrusted project set %+v", got)
			}
		})
	}
}

func TestProjectFileIsLookedForUpToTheRepository(t *testing.T) {
	w := newWorld(t, "", "max_turns: 9")
	deep := filepath.Join(w.project, "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	top := w.project
	w.project = deep
	if got := w.mustLoad(t); got.MaxTurns != 0 {
		t.Errorf("a folder outside of a repository found the file of another")
	}
	put(t, filepath.Join(top, "a", ".git", "HEAD"), "x")
	if got := w.mustLoad(t); got.MaxTurns != 0 {
		t.Errorf("the file above the repository was read")
	}
	if err := os.Rename(filepath.Join(top, "a", ".git"), filepath.Join(top, ".git")); err != nil {
		t.Fatal(err)
	}
	if got := w.mustLoad(t); got.MaxTurns != 9 {
		t.Errorf("the file at the root was not read")
	}
}

func TestProjectFileCannotLeadElsewhereOrBlock(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	put(t, secret, "canary-value: x\n")
	w := newWorld(t, "", "")
	path := filepath.Join(w.project, projectDir, fileName)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	_, err := w.load()
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Fatalf("got %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := w.load(); err == nil || !strings.Contains(err.Error(), "not a plain file") {
		t.Fatalf("got %v", err)
	}
}

func TestWrongSettingsNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, user, env, want string }{
		{"unknown", "model: x\nmax_turn: 3", "", `config.yaml" cannot be used: line 2: unknown key "max_turn", did you mean "max_turns"?`},
		{"zero", "max_turns: 0", "", "line 1: max_turns: 0 is too small"},
		{"provider", "providers:\n  x:\n    url: y", "", `line 3: providers.x: unknown key "url"`},
		{"provider name", "providers: {a/b: {}}", "", "the name of a provider has no /"},
		{"key as name", "providers: {a: {api_key_env: sk-123canary}}", "", "it must be the name of a variable, not a key itself"},
		{"price", "providers: {a: {models: {m: {input_price: -1}}}}", "", "must not be negative"},
		{"environment", "shell_environment_policy: {inherit: everything}", "", `"everything" is not one of all, core, none`},
		{"on_ask", "on_ask: ask", "", `"ask" is not one of deny, fail, defer, approver`},
		{"variable", "", "ten", `variable "DROVER_MAX_TURNS" cannot be used: "ten" is not a whole number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.user, "")
			w.env["DROVER_MAX_TURNS"] = c.env
			_, err := w.load()
			f := fault.From(err)
			if f == nil || f.Exit != fault.Config || f.Code != "config_invalid" || !strings.Contains(f.Error(), c.want) || strings.Contains(f.Error(), "canary") {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestMisspeltVariableIsAWarning(t *testing.T) {
	w := newWorld(t, "", "")
	w.env["DROVER_MAX_TURN"] = "3"
	w.env["DROVER_RUN_ID"] = "run_1"
	w.env["DROVER_COMMAND_MARK"] = "x"
	got := w.mustLoad(t)
	want := []string{"the variable DROVER_MAX_TURN is no setting, did you mean DROVER_MAX_TURNS?"}
	if d := cmp.Diff(want, got.Warnings); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestSecretsAreKnownByName(t *testing.T) {
	c := &Config{Redact: []string{"MINE"}, Providers: map[string]model.ProviderConfig{"x": {APIKeyEnv: "ACCESS"}, "y": {}}}
	for name, want := range map[string]bool{
		"MINE": true, "ACCESS": true, "OPENAI_API_KEY": true, "github_token": true, "CLIENT_SECRET_ID": true, "DB_PASSWORD_2": true,
		"TOKEN": true, "NPMTOKEN": true, "KEY": true, "DB_PASSWD": true, "PASSWD": true, "MYSQL_PWD": true, "SMTP_PASS": true, "SSHPASS": true, "GITHUB_PAT": true,
		"MY_CREDENTIALS": true, "CREDENTIAL": true, "NPM_AUTH": true, "API_KEY_2": true, "npm_config_//host/:_authToken": true, "SESSION_COOKIE": true, "GPG-PASSPHRASE": true,
		"PATH": false, "KEYBOARD": false, "TOKENS_PER_MIN": false, "": false, "PWD": false, "OLDPWD": false, "SSH_AUTH_SOCK": false,
		"MAX_TOKENS": false, "TRESPASS": false, "API_KEY_ID": false, "GIT_AUTHOR_NAME": false, "MONKEY": false, "COMPAT": false,
	} {
		if got := c.IsSecret(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}

func TestPasswordsInAddressesAreSecrets(t *testing.T) {
	c := &Config{}
	for entry, want := range map[string][]string{
		"DATABASE_URL=postgres://me:s3cr%40tpw@db:5432/x": {"me:s3cr%40tpw@", "s3cr%40tpw", "s3cr@tpw"},
		"REDIS=redis://:topsecret@r:6379/0":               {":topsecret@", "topsecret"},
		"TEST_DB=postgres://postgres:postgres@localhost/": {"postgres:postgres@"},
		"HTTPS_PROXY=http://a:pw@proxy":                   {"a:pw@"},
		"MYSQL_DSN=app:p@ss:word@tcp(db)/x":               {"app:p@ss:word@", "p@ss:word"},
		"DATABASE_URL=postgres://me@db/x":                 nil,
		"HOMEPAGE=https://example.com/a:b@c":              nil,
		"MAIL=to:somebody@example.com":                    nil,
		"DOCS_URL=https://example.com:443/@scope":         nil,
	} {
		var got []string
		secrets := c.Secrets([]string{entry})
		name, _, _ := strings.Cut(entry, "=")
		for ; len(got) < len(secrets); name += " " {
			got = append(got, secrets[name])
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", entry, d)
		}
	}
}

// TestValuesInTheConfigAreSecrets: commands may read the file, and a variable
// that it sets has the value of the environment beside it.
func TestValuesInTheConfigAreSecrets(t *testing.T) {
	c := &Config{
		Redact:           []string{"LISTED"},
		ShellEnvironment: tools.ShellEnvironment{Set: map[string]string{"API_TOKEN": "of the file", "LISTED": "listed", "PLAIN": "plain", "DB_URL": "postgres://me:of-the-url@db/x"}},
		Providers: map[string]model.ProviderConfig{
			"used":   {Headers: map[string]string{"Authorization": "Bearer one", "X-Team": "blue"}, Proxy: "http://u:of-the-proxy@p:1"},
			"unused": {Headers: map[string]string{"Authorization": "Bearer two"}, BaseURL: "https://h/v1?api_key=of-the-query&api-version=3"},
		},
	}
	secrets := c.Secrets([]string{"API_TOKEN=of the environment"}, map[string]string{"header Authorization": "one", "more": "of the caller"})
	got := map[string][]string{}
	for name, value := range secrets {
		name = strings.TrimRight(name, " ")
		got[name] = append(got[name], value)
		slices.Sort(got[name])
	}
	want := map[string][]string{
		"API_TOKEN": {"of the environment", "of the file"}, "LISTED": {"listed"}, "DB_URL": {"me:of-the-url@", "of-the-url"},
		"header Authorization": {"one", "two"}, "password in proxy": {"of-the-proxy"}, "api_key in base_url": {"of-the-query"}, "more": {"of the caller"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSchemaKnowsTheKeysOfTheLoader(t *testing.T) {
	type object struct{ Properties map[string]object }
	var s struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(Schema(), &parsed); err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.Resolve(nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		loader []string
		schema object
	}{
		{"file", slices.Collect(maps.Keys((&file{}).keys())), s.object},
		{"provider", slices.Collect(maps.Keys(providerKeys(&model.ProviderConfig{}, ""))), s.Defs["provider"]},
		{"model", slices.Collect(maps.Keys(modelKeys(&model.ModelConfig{}))), s.Defs["model"]},
		{"environment", slices.Collect(maps.Keys(shellEnvironmentKeys(&tools.ShellEnvironment{}))), s.Properties["shell_environment_policy"]},
	} {
		slices.Sort(c.loader)
		if d := cmp.Diff(c.loader, slices.Sorted(maps.Keys(c.schema.Properties))); d != "" {
			t.Errorf("%s (-loader +schema):\n%s", c.name, d)
		}
	}
}

// FuzzConfig checks that an untrusted project can never loosen anything,
// whatever its file says.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("sandbox: off\nnetwork: true\nmax_turns: 1000\n"))
	f.Add([]byte(someHooks))
	base := f.TempDir()
	path := filepath.Join(base, projectDir, fileName)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Options{Getenv: func(string) string { return "" }, Cwd: base})
		if err != nil {
			if fault.From(err).Exit != fault.Config {
				t.Fatalf("got %v", err)
			}
			return
		}
		if c.Model != "" || c.Network || c.AllowLoginShell || c.Sandbox == "off" || c.MaxTurns > 200 || c.MaxDenials > 5 ||
			c.OnDeny != "" || c.Providers != nil || c.Redact != nil || c.Shell != "" || c.Hooks != nil {
			t.Fatalf("%q gave %+v", data, c)
		}
	})
}

func BenchmarkLoadWithoutFiles(b *testing.B) {
	dir := b.TempDir()
	environ := os.Environ()
	for b.Loop() {
		if _, err := Load(Options{Getenv: os.Getenv, Environ: environ, Cwd: dir, ConfigHome: dir}); err != nil {
			b.Fatal(err)
		}
	}
}
