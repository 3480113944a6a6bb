package model

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/fault"
)

func TestBuiltInProviders(t *testing.T) {
	for id, c := range map[string]struct{ variable, base string }{
		"openai/gpt-5":            {"OPENAI_API_KEY", "https://api.openai.com/v1"},
		"anthropic/claude":        {"ANTHROPIC_API_KEY", "https://api.anthropic.com"},
		"ollama/qwen3:4b":         {"", "http://localhost:11434/v1"},
		"openrouter/meta/llama:x": {"OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"},
		"groq/openai/gpt-oss":     {"GROQ_API_KEY", "https://api.groq.com/openai/v1"},
		"mistral/small":           {"MISTRAL_API_KEY", "https://api.mistral.ai/v1"},
		"deepseek/chat":           {"DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"},
		"gemini/flash":            {"GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"},
	} {
		m, err := Open(id, Config{Getenv: env{c.variable: " " + keyOfTests + "\n"}.get})
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		name, model, _ := strings.Cut(id, "/")
		if m.Provider.Name() != name || m.Model != model || m.ID != id || m.Free || m.Info.Shell != "exec_command" {
			t.Errorf("%s: %+v", id, m)
		}
		if m.Clocks != (Clocks{120 * time.Second, 50 * time.Second}) || m.MaxAttempts != 5 || m.Retry.MaxAttempts != 5 || m.Retry.Limiter != m.Limiter || m.Limiter == nil {
			t.Errorf("%s: %+v", id, m)
		}
		want := map[string]string{c.variable: keyOfTests}
		if c.variable == "" {
			want = map[string]string{}
		}
		if diff := cmp.Diff(want, m.Secrets); diff != "" {
			t.Errorf("%s: secrets %s", id, diff)
		}
		if got := endpointOf(t, m.Provider).BaseURL; got != c.base {
			t.Errorf("%s: base URL %s", id, got)
		}
	}
}

// endpointOf returns where a provider sends its requests.
func endpointOf(t *testing.T, p Provider) endpoint {
	t.Helper()
	switch p := p.(type) {
	case *chat:
		return p.endpoint
	case *responses:
		return p.endpoint
	case *messages:
		return p.endpoint
	}
	t.Fatalf("%T has no endpoint", p)
	return endpoint{}
}

func TestVendorsBaseURLVariables(t *testing.T) {
	e := env{"OPENAI_API_KEY": keyOfTests, "ANTHROPIC_API_KEY": keyOfTests, "GROQ_API_KEY": keyOfTests,
		"OPENAI_BASE_URL": "http://localhost:1/v1/", "ANTHROPIC_BASE_URL": "http://localhost:2"}
	own := map[string]ProviderConfig{"anthropic": {BaseURL: "http://localhost:3"}}
	for _, c := range []struct {
		id   string
		own  map[string]ProviderConfig
		want string
	}{
		{"openai/x", nil, "http://localhost:1/v1"}, {"anthropic/x", nil, "http://localhost:2"},
		{"anthropic/x", own, "http://localhost:3"}, {"groq/x", nil, "https://api.groq.com/openai/v1"},
	} {
		m, err := Open(c.id, Config{Getenv: e.get, Providers: c.own})
		if err != nil {
			t.Fatal(err)
		}
		if got := endpointOf(t, m.Provider).BaseURL; got != c.want {
			t.Errorf("%s: %s, want %s", c.id, got, c.want)
		}
	}
}

func TestUsersEntryIsLaidOverTheBuiltInOne(t *testing.T) {
	price := 1.5
	m, err := Open("openai/big/model", Config{Getenv: env{"MY_KEY": keyOfTests}.get, Providers: map[string]ProviderConfig{"openai": {
		API: "chat", APIKeyEnv: "MY_KEY", FirstByte: time.Second, StreamIdle: 2 * time.Second, MaxAttempts: 9, Shell: "shell", ReplayReasoning: "never",
		Headers: map[string]string{"X-Api-Key": "header-secret", "X-Team": "blue"}, Proxy: "http://u:proxy-secret@p:1",
		Models: map[string]ModelConfig{"big/model": {ContextWindow: 1000, InputPrice: &price, Shell: "shell_command"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Clocks != (Clocks{time.Second, 2 * time.Second}) || m.MaxAttempts != 9 || m.Info.ContextWindow != 1000 || m.Info.InputPrice != &price || m.Info.Shell != "shell_command" {
		t.Errorf("got %+v", m)
	}
	want := map[string]string{"MY_KEY": keyOfTests, "header X-Api-Key": "header-secret", "password in proxy": "proxy-secret"}
	if diff := cmp.Diff(want, m.Secrets); diff != "" {
		t.Error(diff)
	}
	p := endpointOf(t, m.Provider)
	if _, ok := m.Provider.(*chat); !ok || p.BaseURL != "https://api.openai.com/v1" || p.ReplayReasoning != "never" || len(p.secrets) != 3 {
		t.Errorf("got %+v", p)
	}
}

func TestModelsThatCannotBeOpened(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bad, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(p ProviderConfig) map[string]ProviderConfig {
		if p.API == "" {
			p.API = "chat"
		}
		if p.BaseURL == "" {
			p.BaseURL = "http://localhost:1/v1"
		}
		return map[string]ProviderConfig{"acme": p}
	}
	for _, c := range []struct {
		name, id  string
		providers map[string]ProviderConfig
		env       env
		says, fix string
	}{
		{"misspelled provider", "opnai/gpt-5", nil, nil, `the provider "opnai" is unknown`, "did you mean openai?"},
		{"far provider", "frobnicator/x", of(ProviderConfig{}), nil, "is unknown", "known are acme, anthropic, deepseek"},
		{"no provider", "gpt-5", nil, nil, "no provider/model", "known are"},
		{"empty", "", nil, nil, "no provider/model", ""},
		{"only a provider", "openai", nil, nil, "names no model of the provider openai", "openai/MODEL"},
		{"only a provider and a slash", "acme/", of(ProviderConfig{}), nil, "names no model", "acme/MODEL"},
		{"only a slash", "/x", nil, nil, `the provider "" is unknown`, ""},
		{"no script", "script:", nil, nil, "no file", "script:FILE"},
		{"unknown api", "acme/x", of(ProviderConfig{API: "grpc"}), nil, `api "grpc"`, "chat, messages, responses"},
		{"no api", "acme/x", map[string]ProviderConfig{"acme": {BaseURL: "http://x"}}, nil, "has no api", "chat"},
		{"no base_url", "acme/x", map[string]ProviderConfig{"acme": {API: "chat"}}, nil, "has no base_url", "https://"},
		{"base_url is a path", "acme/x", of(ProviderConfig{BaseURL: "/v1"}), nil, "no http or https URL", "https://"},
		{"base_url without a scheme", "acme/x", of(ProviderConfig{BaseURL: "localhost:8080/v1"}), nil, "no http or https URL", "https://"},
		{"base_url with another scheme", "acme/x", of(ProviderConfig{BaseURL: "ftp://u:hidden@x"}), nil, "no http or https URL", ""},
		{"base_url is broken", "acme/x", of(ProviderConfig{BaseURL: "http://u:hidden@[x"}), nil, "no http or https URL", ""},
		{"base_url from the environment", "openai/x", nil, env{"OPENAI_BASE_URL": "nope", "OPENAI_API_KEY": "k"}, "no http or https URL", "OPENAI_BASE_URL"},
		{"ca_file is missing", "acme/x", of(ProviderConfig{CAFile: "/does/not/exist.pem"}), nil, "ca_file cannot be read", ""},
		{"ca_file is empty of certificates", "acme/x", of(ProviderConfig{CAFile: bad}), nil, "holds no certificate", ""},
		{"proxy", "acme/x", of(ProviderConfig{Proxy: "ftp://u:hidden@x"}), nil, `scheme "ftp"`, ""},
		{"shell", "acme/x", of(ProviderConfig{Shell: "bash"}), nil, `shell "bash"`, "shell"},
		{"replay_reasoning", "acme/x", of(ProviderConfig{ReplayReasoning: "allways"}), nil, "replay_reasoning", "did you mean always?"},
		{"negative clock", "acme/x", of(ProviderConfig{FirstByte: -1}), nil, "must not be negative", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(c.id, Config{Getenv: c.env.get, Providers: c.providers})
			var f *fault.Error
			if !errors.As(err, &f) || f.Exit != fault.Config || !strings.Contains(f.Why, c.says) || !strings.Contains(f.Fix, c.fix) {
				t.Fatalf("got %+v", err)
			}
			if strings.Contains(f.Text(), "hidden") {
				t.Errorf("the password is shown: %s", f.Text())
			}
		})
	}
}

func TestMissingKeyNamesItsVariable(t *testing.T) {
	for _, value := range []string{
		"", " ", "\t\n", "${{ secrets.OPENAI_API_KEY }}", "${{secrets.KEY}}", "$OPENAI_API_KEY", "${OPENAI_API_KEY}", "$(OPENAI_API_KEY)", "%OPENAI_API_KEY%",
		"sk-first canary-second", "sk-canary\x00", "schlüssel-canary",
	} {
		_, err := Open("openai/gpt-5", Config{Getenv: env{"OPENAI_API_KEY": value}.get})
		var f *fault.Error
		if !errors.As(err, &f) || f.Exit != fault.Auth || !strings.Contains(f.Why, "OPENAI_API_KEY") {
			t.Errorf("%q: got %+v", value, err)
			continue
		}
		if strings.Contains(f.Text(), "canary") || strings.Contains(f.Text(), "secrets.") {
			t.Errorf("%q: the value is shown: %s", value, f.Text())
		}
	}
	for _, value := range []string{"$ecret-key-1", "%41%42", "key$(x"} {
		if _, err := Open("openai/gpt-5", Config{Getenv: env{"OPENAI_API_KEY": value}.get}); err != nil {
			t.Errorf("%q is refused: %v", value, err)
		}
	}
	if _, err := Open("openai/gpt-5", Config{}); fault.From(err).Exit != fault.Auth {
		t.Errorf("without an environment: %v", err)
	}
}

func TestScriptIsFoundBesideTheCaller(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), []byte(`{"text":"hi"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"script:s.jsonl", "script:" + filepath.Join(dir, "s.jsonl")} {
		m, err := Open(id, Config{BaseDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if r := play(t, t.Context(), m.Provider, &Request{}); r.text != "hi" || !m.Free || m.ID != id || m.Retry == nil || m.Limiter == nil {
			t.Errorf("%s: %+v", id, m)
		}
	}
	if _, err := Open("script:none.jsonl", Config{BaseDir: dir}); fault.From(err).Exit != fault.Config {
		t.Errorf("got %v", err)
	}
}

func TestModelsWithOneKeyShareTheirLimiter(t *testing.T) {
	c := Config{Getenv: env{"OPENAI_API_KEY": keyOfTests, "GROQ_API_KEY": keyOfTests}.get, Limiters: &Limiters{}}
	open := func(id string) *Limiter {
		m, err := Open(id, c)
		if err != nil {
			t.Fatal(err)
		}
		return m.Limiter
	}
	if open("openai/a") != open("openai/b") || open("openai/a") == open("groq/a") {
		t.Error("limiters are not shared by provider and key")
	}
}

// TestUnknownShellIsRefused: a run without any command tool would look
// like one whose model chose not to use it.
func TestUnknownShellIsRefused(t *testing.T) {
	_, err := Open("p/m", Config{Providers: map[string]ProviderConfig{"p": {API: "chat", BaseURL: "http://localhost:1/v1", Shell: "fish"}}})
	if f := fault.From(err); f == nil || f.Exit != fault.Config {
		t.Errorf("got %v", err)
	}
}
