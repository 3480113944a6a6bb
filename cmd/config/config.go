// Package config reads drover's settings: the user's file, the project's file
// and DROVER_* variables become one typed Config.
//
// The user's file is config.yaml in Home. The project's file is
// .drover/config.yaml in the folder of the run or in a folder above it, up to
// the repository's root. Unless it is trusted it may only tighten: lower a
// limit (max_turns, max_tool_calls, max_tokens, max_cost, timeout,
// idle_timeout, tool_timeout, max_denials, tool_output_token_limit), choose a
// stricter sandbox, close the network, refuse login shells. Everything else in
// it is left out with a warning. A variable outranks both files. What is wrong
// in a file is an error with its line; nothing is passed over.
//
// Flags and task files are merged with the result elsewhere. No other package
// knows viper. This package reads files and prints nothing.
package config

import (
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"

	"drover/output/fault"
	"drover/runner"
	"drover/runner/model"
	"drover/runner/strict"
	"drover/tools"
)

// envPrefix begins the variables that are settings.
const envPrefix = "DROVER_"

// Settings are the settings that one line can give. The zero value of each
// means that nobody gave it.
type Settings struct {
	// Model is a model id, Shell the program of the session's shell.
	Model string `mapstructure:"model"`
	Shell string `mapstructure:"shell"`
	// Sandbox is read-only, workspace-write or off.
	Sandbox string `mapstructure:"sandbox"`
	// Network opens the network for commands, AllowLoginShell offers login
	// shells to the model, Ephemeral keeps no session file.
	Network         bool `mapstructure:"network"`
	AllowLoginShell bool `mapstructure:"allow_login_shell"`
	Ephemeral       bool `mapstructure:"ephemeral"`
	// OnAsk is deny, fail, defer or approver, OnDeny continue, report or fail.
	OnAsk string `mapstructure:"on_ask"`
	// Approver is a command that answers requests, ApprovalTimeout how long one
	// waits. Only the user's file, a trusted project or a variable sets them.
	Approver        string        `mapstructure:"approver"`
	ApprovalTimeout time.Duration `mapstructure:"approval_timeout"`
	OnDeny          string        `mapstructure:"on_deny"`
	// The limits are above zero. MaxCost is in US dollars.
	MaxTurns     int     `mapstructure:"max_turns"`
	MaxToolCalls int     `mapstructure:"max_tool_calls"`
	MaxTokens    int64   `mapstructure:"max_tokens"`
	MaxCost      float64 `mapstructure:"max_cost"`
	MaxDenials   int     `mapstructure:"max_denials"`
	// LoopWarn and LoopStop are about the same call with the same result.
	LoopWarn    int           `mapstructure:"loop_warn"`
	LoopStop    int           `mapstructure:"loop_stop"`
	Timeout     time.Duration `mapstructure:"timeout"`
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`
	ToolTimeout time.Duration `mapstructure:"tool_timeout"`
	// MaxPoll bounds how long a wait for a command that runs in the background
	// takes; less than five seconds counts as these.
	MaxPoll time.Duration `mapstructure:"background_terminal_max_timeout"`
	// ToolOutputTokenLimit bounds what the model sees of one result.
	ToolOutputTokenLimit int `mapstructure:"tool_output_token_limit"`
	// Format is a format of stdout; Color is auto, always or never.
	Format string `mapstructure:"format"`
	Color  string `mapstructure:"color"`
}

// Config is everything that files and variables say.
type Config struct {
	Settings
	// Env are the settings that come from variables; they outrank a task file.
	Env Settings
	// Providers are the user's providers by name.
	Providers map[string]model.ProviderConfig
	// ShellEnvironment is the shell_environment_policy.
	ShellEnvironment tools.ShellEnvironment
	// NetworkFromEnv says that a variable opens or closes the network.
	NetworkFromEnv bool
	// Redact are names of variables whose values are secrets, as listed. See
	// IsSecret for the others.
	Redact []string
	// Hooks watch over the run: those of the user, then those of a trusted
	// project.
	Hooks []runner.Hook
	// Files are the files that were read, lowest rank first.
	Files []string
	// Warnings say what was left out, one sentence each.
	Warnings []string
}

// Options say where settings come from.
type Options struct {
	// Getenv reads the environment.
	Getenv func(string) string
	// Environ is the environment as KEY=VALUE, in which misspelt variables are
	// looked for; it may be nil.
	Environ []string
	// Cwd is the folder of the run, absolute. Empty reads no project file.
	Cwd string
	// ConfigHome is the folder of the user's file; empty means Home.
	ConfigHome string
	// TrustProject lets the project's file set everything.
	TrustProject bool
}

// Home is the folder of the user's config and policy: drover below
// XDG_CONFIG_HOME, or below ~/.config. Without either variable it is empty.
func Home(getenv func(string) string) string {
	// The XDG specification has relative paths ignored.
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "drover")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "drover")
	}
	return ""
}

// Load reads all sources. Its errors are faults of class Config that name the
// file and the line, or the variable.
func Load(o Options) (*Config, error) {
	home := o.ConfigHome
	if home == "" {
		home = Home(o.Getenv)
	}
	c := &Config{}
	v := viper.New()
	if home != "" {
		f, err := readUserFile(filepath.Join(home, fileName))
		if err != nil {
			return nil, err
		}
		if err := c.merge(v, f); err != nil {
			return nil, err
		}
	}
	if o.Cwd != "" {
		f, err := readProjectFile(o.Cwd)
		if err != nil {
			return nil, err
		}
		if f != nil && !o.TrustProject {
			c.Warnings = append(c.Warnings, f.tighten(v)...)
		}
		if err := c.merge(v, f); err != nil {
			return nil, err
		}
	}
	if err := c.readVariables(v, o); err != nil {
		return nil, err
	}
	if err := v.Unmarshal(&c.Settings); err != nil {
		return nil, &fault.Error{Code: "config_invalid", What: "the config cannot be used", Why: err.Error(), Exit: fault.Config, Err: err}
	}
	c.NetworkFromEnv = o.Getenv(envPrefix+"NETWORK") != ""
	return c, nil
}

// merge puts a file over what is there. nil is no file.
func (c *Config) merge(v *viper.Viper, f *file) error {
	if f == nil {
		return nil
	}
	c.Files = append(c.Files, f.path)
	if err := v.MergeConfigMap(f.settings); err != nil {
		return fmt.Errorf("merge config: %w", err)
	}
	for name, p := range f.providers {
		if c.Providers == nil {
			c.Providers = map[string]model.ProviderConfig{}
		}
		c.Providers[name] = p
	}
	if f.shellEnvironment != nil {
		c.ShellEnvironment = *f.shellEnvironment
	}
	c.addRedact(f.redact...)
	c.Hooks = append(c.Hooks, f.hooks...)
	return nil
}

func (c *Config) addRedact(names ...string) {
	for _, n := range names {
		if !slices.Contains(c.Redact, n) {
			c.Redact = append(c.Redact, n)
		}
	}
}

// readVariables reads the settings among the variables. An empty one is not
// set.
func (c *Config) readVariables(v *viper.Viper, o Options) error {
	env := viper.New()
	var names []string
	for _, k := range settingKeys() {
		name := envPrefix + strings.ToUpper(k.name)
		names = append(names, name)
		text := o.Getenv(name)
		if text == "" {
			continue
		}
		value, err := k.read(strict.Scalar(strict.Source{Kind: "variable", Name: name, Code: "config_invalid"}, text))
		if err != nil {
			return err
		}
		v.Set(k.name, value)
		env.Set(k.name, value)
	}
	c.readRedact(o.Getenv)
	c.warnOfMisspelt(append(names, envPrefix+"REDACT"), o.Environ)
	if err := env.Unmarshal(&c.Env); err != nil {
		return errors.New("decode variables: " + err.Error())
	}
	return nil
}

// warnOfMisspelt looks for variables that were probably meant as settings.
func (c *Config) warnOfMisspelt(known, environ []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) {
			continue
		}
		short := make([]string, len(known))
		for i, k := range known {
			short[i] = strings.TrimPrefix(k, envPrefix)
		}
		if near := fault.Nearest(strings.TrimPrefix(name, envPrefix), short); near != "" {
			c.Warnings = append(c.Warnings, fmt.Sprintf("the variable %s is no setting, did you mean %s%s?", strict.Shorten(name), envPrefix, near))
		}
	}
}

//go:embed config.schema.json
var schema []byte

// Schema returns the JSON Schema of config files.
func Schema() []byte { return slices.Clone(schema) }
