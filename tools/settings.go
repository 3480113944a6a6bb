package tools

import (
	"time"

	"drover/tools/sandbox"
)

// Commands are the settings that every command of a run obeys.
type Commands struct {
	// RunID and SessionID go into the environment of every command.
	RunID, SessionID string
	// Environ is drover's own environment as KEY=VALUE, from which the
	// environment of commands is made.
	Environ []string
	// Remove are names that reach no command: provider keys and the
	// secrets named in the config.
	Remove []string
	// Environment says what else is kept, dropped and set.
	Environment ShellEnvironment
	// Shell is the session's shell; empty means that of the user database.
	Shell string
	// AllowLogin offers login shells to the model.
	AllowLogin bool
	// Timeout ends any command (--tool-timeout); 0 is no limit.
	Timeout time.Duration
	// Grace is the time between TERM and KILL.
	Grace time.Duration
	// MaxPoll bounds one wait for a command that outlives its call; see Sessions.
	MaxPoll time.Duration
	// Sandbox bounds what commands can do; nil starts them directly.
	Sandbox *sandbox.Sandbox
	// Sessions are the commands that outlive their call; nil means that none
	// does.
	Sessions *Sessions
}

// ShellEnvironment is the shell_environment_policy of the config. The zero
// value passes everything on but Commands.Remove.
type ShellEnvironment struct {
	// Inherit is all (the default), core or none.
	Inherit string `yaml:"inherit"`
	// DropSecretNames drops names that contain KEY, SECRET or TOKEN.
	DropSecretNames bool `yaml:"drop_secret_names"`
	// Exclude and IncludeOnly are patterns with * and ?, without case.
	Exclude     []string          `yaml:"exclude"`
	Set         map[string]string `yaml:"set"`
	IncludeOnly []string          `yaml:"include_only"`
	// PassKeys are names in Commands.Remove that commands get all the same.
	PassKeys []string `yaml:"pass_keys"`
}
