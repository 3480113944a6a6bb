package model

import (
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover/output/fault"
)

// The defaults of what a provider's entry leaves open.
const (
	defaultFirstByte = 120 * time.Second
	defaultIdle      = 50 * time.Second
	defaultShell     = "exec_command"
	// minSecret is the shortest value that messages are searched for, in bytes.
	minSecret = 8
)

// apis are the wire formats by name.
var apis = map[string]func(endpoint) Provider{
	"responses": newResponses,
	"chat":      newChat,
	"messages":  newMessages,
}

var shells = []string{"exec_command", "shell", "shell_command", localShell}

// Open makes the model of an id ready to be asked: "provider/model", where the
// model's name may contain slashes, or "script:FILE". It reads keys and files
// but sends nothing. Its errors are *fault.Error: of class Config for an
// unknown provider and wrong settings, of class Auth for a missing key.
func Open(id string, c Config) (*OpenedModel, error) {
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if file, ok := strings.CutPrefix(id, "script:"); ok {
		return c.openScript(id, file)
	}
	name, modelName, _ := strings.Cut(id, "/")
	p, err := c.provider(id, name, modelName)
	if err != nil {
		return nil, err
	}
	return c.openProvider(id, name, modelName, p)
}

func (c *Config) openScript(id, file string) (*OpenedModel, error) {
	if file == "" {
		return nil, configFault(id, "no file is named", "write script:FILE")
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(c.BaseDir, file)
	}
	p, err := openScript(file)
	if err != nil {
		return nil, err
	}
	// A script needs no pity: its waits are short unless it asks for longer.
	limiter := &Limiter{}
	return &OpenedModel{
		Provider: p, Model: "script", ID: id, Info: ModelConfig{Shell: defaultShell},
		Clocks: Clocks{FirstByte: defaultFirstByte, Idle: defaultIdle}, MaxAttempts: DefaultMaxAttempts,
		Limiter: limiter, Retry: &Retry{MaxAttempts: DefaultMaxAttempts, Base: 20 * time.Millisecond, Cap: time.Second, Limiter: limiter},
		Secrets: map[string]string{}, Free: true,
	}, nil
}

// provider returns the settings of a provider by name.
func (c *Config) provider(id, name, modelName string) (ProviderConfig, error) {
	base, known := builtin[name]
	own, configured := c.Providers[name]
	list := slices.Sorted(maps.Keys(builtin))
	for n := range c.Providers {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	all := "known are " + strings.Join(list, ", ") + "; others go under providers: in the config"
	switch {
	case !known && !configured && modelName == "":
		return own, configFault(id, "it is no provider/model", "write it as provider/model; "+all)
	case !known && !configured:
		fix := nearestFix(name, list)
		if strings.HasPrefix(fix, "known") {
			fix = ""
		} else {
			fix += " "
		}
		return own, configFault(id, fmt.Sprintf("the provider %q is unknown", name), fix+all)
	case modelName == "":
		return own, configFault(id, "it names no model of the provider "+name, "write "+name+"/MODEL")
	}
	if env := baseURLEnv[name]; env != "" && own.BaseURL == "" {
		if u := strings.TrimSpace(c.Getenv(env)); u != "" {
			own.BaseURL = u
		}
	}
	return own.over(base), nil
}

func (c *Config) openProvider(id, name, modelName string, p ProviderConfig) (*OpenedModel, error) {
	open, err := checkProvider(id, name, p)
	if err != nil {
		return nil, err
	}
	info := p.Models[modelName]
	for _, s := range []string{p.Shell, defaultShell} {
		if info.Shell == "" {
			info.Shell = s
		}
	}
	if !slices.Contains(shells, info.Shell) {
		return nil, configFault(id, fmt.Sprintf("shell %q of the provider %s is unknown", info.Shell, name), nearestFix(info.Shell, shells))
	}
	client, err := newClient(clientOptions{proxy: p.Proxy, caFile: p.CAFile, getenv: c.Getenv})
	if err != nil {
		return nil, configFault(id, "the provider "+name+": "+err.Error(), "correct it in the config or the environment")
	}
	key, err := c.key(name, p.APIKeyEnv)
	if err != nil {
		return nil, err
	}
	e := endpoint{
		Name: name, BaseURL: strings.TrimRight(p.BaseURL, "/"), Key: key, KeyEnv: p.APIKeyEnv, Headers: p.Headers,
		Client: client, UserAgent: c.UserAgent, ReplayReasoning: orDefault(p.ReplayReasoning, "auto"), Logger: c.Logger,
	}
	secrets := c.secrets(p, key)
	for _, v := range secrets {
		// Shorter ones turn up in ordinary words.
		if len(v) >= minSecret {
			e.secrets = append(e.secrets, v)
		}
	}
	limiter := c.Limiters.get(limiterKey{provider: name, baseURL: e.BaseURL, key: key})
	attempts := orDefault(p.MaxAttempts, DefaultMaxAttempts)
	return &OpenedModel{
		Provider: open(e), Model: modelName, ID: id, Info: info,
		Clocks:      Clocks{FirstByte: orDefault(p.FirstByte, defaultFirstByte), Idle: orDefault(p.StreamIdle, defaultIdle)},
		MaxAttempts: attempts, Secrets: secrets, Limiter: limiter, listed: listedProvider(name, e.BaseURL),
		Retry: &Retry{MaxAttempts: attempts, Base: retryBase, Cap: retryCap, Limiter: limiter},
	}, nil
}

// orDefault returns v, or d if v is not set.
func orDefault[T comparable](v, d T) T {
	var unset T
	if v == unset {
		return d
	}
	return v
}

// checkProvider checks the settings and returns the constructor of the wire
// format.
func checkProvider(id, name string, p ProviderConfig) (func(endpoint) Provider, error) {
	names := slices.Sorted(maps.Keys(apis))
	open := apis[p.API]
	if open == nil {
		why := fmt.Sprintf("api %q of the provider %s is unknown", p.API, name)
		if p.API == "" {
			why = "the provider " + name + " has no api"
		}
		return nil, configFault(id, why, "set api to one of "+strings.Join(names, ", "))
	}
	u, err := url.Parse(p.BaseURL)
	switch {
	case p.BaseURL == "":
		return nil, configFault(id, "the provider "+name+" has no base_url", "set base_url, such as https://host.example/v1")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		// The text may hold a password; it is not repeated.
		fix := "write it as https://host.example/v1"
		if env := baseURLEnv[name]; env != "" {
			fix += "; it may come from " + env
		}
		return nil, configFault(id, "base_url of the provider "+name+" is no http or https URL", fix)
	}
	rules := []string{"auto", "always", "never"}
	if p.ReplayReasoning != "" && !slices.Contains(rules, p.ReplayReasoning) {
		return nil, configFault(id, fmt.Sprintf("replay_reasoning %q of the provider %s is unknown", p.ReplayReasoning, name), nearestFix(p.ReplayReasoning, rules))
	}
	if p.FirstByte < 0 || p.StreamIdle < 0 || p.MaxAttempts < 0 {
		return nil, configFault(id, "first_byte, stream_idle and max_attempts of the provider "+name+" must not be negative", "leave them out for the defaults")
	}
	return open, nil
}

func configFault(id, why, fix string) *fault.Error {
	return &fault.Error{Code: "model_config", What: fmt.Sprintf("the model %q cannot be used", id), Why: why, Fix: fix, Exit: fault.Config}
}

// key reads the API key. A variable that is set to nothing, or to an expression
// that was never expanded, is as good as none: builds of forks get such ones.
func (c *Config) key(provider, env string) (string, error) {
	if env == "" {
		return "", nil
	}
	key := strings.TrimSpace(c.Getenv(env))
	why := ""
	switch {
	case key == "":
		why = "the variable " + env + " is not set or empty"
	case unexpanded(key):
		why = "the variable " + env + " holds an expression that was never expanded"
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		why = "the variable " + env + " holds blanks or characters that no key has"
	default:
		return key, nil
	}
	return "", &fault.Error{Code: "no_api_key", What: fmt.Sprintf("the provider %q has no key", provider), Why: why,
		Fix: "set " + env + " to an API key; builds of forks do not get the secrets of the repository", Exit: fault.Auth}
}

// unexpanded tells whether a value is the text of a variable or an expression.
func unexpanded(v string) bool {
	if strings.HasPrefix(v, "%") && strings.HasSuffix(v, "%") && len(v) > 1 {
		return true
	}
	rest, ok := strings.CutPrefix(v, "$")
	if !ok {
		return false
	}
	name := strings.TrimRight(strings.TrimLeft(rest, "{("), "})")
	return name != rest || !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}
