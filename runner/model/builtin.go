package model

import "slices"

// builtin are the providers that need no entry in the config. A user's entry of
// the same name is laid over them, value by value.
var builtin = map[string]ProviderConfig{
	"openai":     {API: "responses", BaseURL: "https://api.openai.com/v1", APIKeyEnv: "OPENAI_API_KEY"},
	"anthropic":  {API: "messages", BaseURL: "https://api.anthropic.com", APIKeyEnv: "ANTHROPIC_API_KEY"},
	"ollama":     {API: "chat", BaseURL: "http://localhost:11434/v1"},
	"openrouter": {API: "chat", BaseURL: "https://openrouter.ai/api/v1", APIKeyEnv: "OPENROUTER_API_KEY"},
	"groq":       {API: "chat", BaseURL: "https://api.groq.com/openai/v1", APIKeyEnv: "GROQ_API_KEY"},
	"mistral":    {API: "chat", BaseURL: "https://api.mistral.ai/v1", APIKeyEnv: "MISTRAL_API_KEY"},
	"deepseek":   {API: "chat", BaseURL: "https://api.deepseek.com/v1", APIKeyEnv: "DEEPSEEK_API_KEY"},
	"gemini":     {API: "chat", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", APIKeyEnv: "GEMINI_API_KEY"},
}

// baseURLEnv are the variables by which vendors let their base URL be replaced.
// A base_url in the config wins over them.
var baseURLEnv = map[string]string{
	"openai":    "OPENAI_BASE_URL",
	"anthropic": "ANTHROPIC_BASE_URL",
}

// over lays the user's entry over a built-in one.
func (p ProviderConfig) over(base ProviderConfig) ProviderConfig {
	for _, v := range []struct {
		to   *string
		from string
	}{
		{&p.API, base.API}, {&p.BaseURL, base.BaseURL}, {&p.APIKeyEnv, base.APIKeyEnv},
	} {
		if *v.to == "" {
			*v.to = v.from
		}
	}
	return p
}

// KeyNames are the variables that hold provider keys: those of the built-in
// providers and of the given ones. None of them may reach a command.
func KeyNames(providers map[string]ProviderConfig) []string {
	var names []string
	for _, list := range []map[string]ProviderConfig{builtin, providers} {
		for _, p := range list {
			if p.APIKeyEnv != "" && !slices.Contains(names, p.APIKeyEnv) {
				names = append(names, p.APIKeyEnv)
			}
		}
	}
	slices.Sort(names)
	return names
}
