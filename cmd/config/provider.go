package config

import (
	"path/filepath"
	"strings"

	"drover/runner/model"
	"drover/runner/strict"
	"drover/tools"
)

// shells are the command tools that a provider or a model can be offered.
var shells = []string{"exec_command", "shell", "shell_command", "local_shell"}

// readProviders reads the map of providers. A path in it is relative to dir.
func readProviders(v strict.Value, dir string) (map[string]model.ProviderConfig, error) {
	providers := map[string]model.ProviderConfig{}
	err := v.Entries(func(name string, v strict.Value) error {
		if name == "" || strings.ContainsAny(name, "/: \t\n") {
			return v.Errorf("the name of a provider has no /, no : and no blanks")
		}
		var p model.ProviderConfig
		err := v.Each(providerKeys(&p, dir))
		providers[name] = p
		return err
	})
	return providers, err
}

func providerKeys(p *model.ProviderConfig, dir string) strict.Keys {
	return strict.Keys{
		"api":         into(&p.API, func(v strict.Value) (string, error) { return v.OneOf("responses", "chat", "messages") }),
		"base_url":    into(&p.BaseURL, strict.Value.Filled),
		"api_key_env": into(&p.APIKeyEnv, variableName),
		"headers":     into(&p.Headers, strict.Value.TextMap),
		"ca_file": into(&p.CAFile, func(v strict.Value) (string, error) {
			path, err := v.Filled()
			if err == nil && !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			return path, err
		}),
		"proxy":            into(&p.Proxy, strict.Value.Filled),
		"models":           into(&p.Models, readModels),
		"shell":            into(&p.Shell, func(v strict.Value) (string, error) { return v.OneOf(shells...) }),
		"replay_reasoning": into(&p.ReplayReasoning, func(v strict.Value) (string, error) { return v.OneOf("auto", "always", "never") }),
		"first_byte":       into(&p.FirstByte, strict.Value.Duration),
		"stream_idle":      into(&p.StreamIdle, strict.Value.Duration),
		"max_attempts":     into(&p.MaxAttempts, positiveInt),
	}
}

func readModels(v strict.Value) (map[string]model.ModelConfig, error) {
	models := map[string]model.ModelConfig{}
	err := v.Entries(func(name string, v strict.Value) error {
		var m model.ModelConfig
		err := v.Each(modelKeys(&m))
		models[name] = m
		return err
	})
	return models, err
}

func modelKeys(m *model.ModelConfig) strict.Keys {
	return strict.Keys{
		"context_window":    into(&m.ContextWindow, positiveInt),
		"max_output_tokens": into(&m.MaxOutputTokens, positiveInt),
		"input_price":       into(&m.InputPrice, price),
		"output_price":      into(&m.OutputPrice, price),
		"cached_price":      into(&m.CachedPrice, price),
		"shell":             into(&m.Shell, func(v strict.Value) (string, error) { return v.OneOf(shells...) }),
	}
}

// readShellEnvironment reads the shell_environment_policy.
func readShellEnvironment(v strict.Value) (*tools.ShellEnvironment, error) {
	e := &tools.ShellEnvironment{}
	return e, v.Each(shellEnvironmentKeys(e))
}

func shellEnvironmentKeys(e *tools.ShellEnvironment) strict.Keys {
	return strict.Keys{
		"inherit": into(&e.Inherit, func(v strict.Value) (string, error) { return v.OneOf("all", "core", "none") }),
		"ignore_default_excludes": func(v strict.Value) error {
			ignore, err := v.Bool()
			e.DropSecretNames = !ignore
			return err
		},
		"exclude":      into(&e.Exclude, strict.Value.Texts),
		"include_only": into(&e.IncludeOnly, strict.Value.Texts),
		"pass_keys":    into(&e.PassKeys, strict.Value.Texts),
		"set":          into(&e.Set, strict.Value.TextMap),
	}
}

// into makes a key that stores what read returns.
func into[T any](to *T, read func(strict.Value) (T, error)) func(strict.Value) error {
	return func(v strict.Value) (err error) {
		*to, err = read(v)
		return err
	}
}

func positiveInt(v strict.Value) (int, error) {
	n, err := v.Int(1)
	return int(min(n, 1<<31-1)), err
}

// price is a price for a million tokens; nothing to pay is one too.
func price(v strict.Value) (*float64, error) {
	n, err := v.NotNegative()
	return &n, err
}

// variableName guards against a key that was put where its variable's name
// belongs: its text must not end in an error message.
func variableName(v strict.Value) (string, error) {
	s, err := v.Filled()
	if err != nil {
		return "", err
	}
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return "", v.Errorf("it must be the name of a variable, not a key itself")
		}
	}
	return s, nil
}
