package model

import (
	"log/slog"
	"time"
)

// Config is everything that opening a provider depends on.
type Config struct {
	// Providers are the user's, by name; built-in ones are merged below them.
	Providers map[string]ProviderConfig
	// Getenv reads the environment, for keys, base URLs and proxies.
	Getenv func(string) string
	// BaseDir resolves relative paths of script: and replay: ids.
	BaseDir string
	// UserAgent is sent with every request.
	UserAgent string
	// Logger gets diagnostics; nil discards them.
	Logger *slog.Logger
	// Limiters are shared by all models that a process opens, so that those
	// with one key back off together; nil gives each model its own.
	Limiters *Limiters
}

// ProviderConfig is one entry of the config's providers map. Only API and
// BaseURL are required of a provider that is not built in.
type ProviderConfig struct {
	// API is the wire format: responses, chat or messages.
	API string `yaml:"api"`
	// BaseURL is what the vendor's SDK takes: with /v1 for OpenAI-style
	// servers, without for Anthropic.
	BaseURL string `yaml:"base_url"`
	// APIKeyEnv names the variable that holds the key. Empty: no key is sent.
	APIKeyEnv string            `yaml:"api_key_env"`
	Headers   map[string]string `yaml:"headers"`
	// CAFile is a PEM file with further root certificates.
	CAFile string `yaml:"ca_file"`
	// Proxy is a proxy URL; empty honours HTTPS_PROXY, HTTP_PROXY, NO_PROXY.
	Proxy  string                 `yaml:"proxy"`
	Models map[string]ModelConfig `yaml:"models"`
	// Shell chooses the command tool: exec_command, shell, shell_command or
	// local_shell.
	Shell string `yaml:"shell"`
	// ReplayReasoning sends reasoning text back with the history: auto (the
	// default: where the API wants it), always, never.
	ReplayReasoning string        `yaml:"replay_reasoning"`
	FirstByte       time.Duration `yaml:"first_byte"`
	StreamIdle      time.Duration `yaml:"stream_idle"`
	MaxAttempts     int           `yaml:"max_attempts"`
}

// ModelConfig adds limits and prices to a model's name. It is no list of
// allowed names.
type ModelConfig struct {
	// ContextWindow and MaxOutputTokens are in tokens; 0 is unknown. Of a
	// conversation that fills most of a known window the oldest tool outputs
	// are dropped.
	ContextWindow   int `yaml:"context_window"`
	MaxOutputTokens int `yaml:"max_output_tokens"`
	// Prices in US dollars for a million tokens; nil is unknown.
	InputPrice  *float64 `yaml:"input_price"`
	OutputPrice *float64 `yaml:"output_price"`
	CachedPrice *float64 `yaml:"cached_price"`
	Shell       string   `yaml:"shell"`
}

// OpenedModel is a model ready to be asked.
type OpenedModel struct {
	// Provider answers; Model is the name it is asked for.
	Provider Provider
	Model    string
	// ID is the id as the user wrote it, such as "openai/gpt-5".
	ID string
	// Info is what is known of the model. Shell is resolved.
	Info ModelConfig
	// Clocks and MaxAttempts are resolved from the config and the defaults.
	Clocks      Clocks
	MaxAttempts int
	// Retry decides about further attempts. Limiter is waited for before each
	// attempt; it may be shared with other models.
	Retry   *Retry
	Limiter *Limiter
	// Secrets are the values that must be masked, by variable name; the names
	// of those that stand elsewhere have a blank.
	Secrets map[string]string
	// Free says that answers cost nothing (scripts, replays).
	Free bool
	// listed is the provider's name in the list of prices, "" if it has none.
	listed string
}

// Forget tells the provider that a session has ended, for providers that keep
// something about each.
func (m *OpenedModel) Forget(sessionID string) {
	if p, ok := m.Provider.(interface{ forget(session string) }); ok {
		p.forget(sessionID)
	}
}

// Clocks bound the waits of one response; 0 means no bound.
type Clocks struct {
	// FirstByte bounds the time until the response has begun.
	FirstByte time.Duration
	// Idle bounds the time between two deltas that carry content; comments
	// and pings do not count.
	Idle time.Duration
}
