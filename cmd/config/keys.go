package config

import (
	"cmp"
	"slices"
	"time"

	"drover/runner"
	"drover/runner/strict"
	"drover/tools"
)

// key is a setting that one line can give.
type key struct {
	name string
	// read checks a value and returns it with its type.
	read func(strict.Value) (any, error)
	// tightens tells whether value is stricter than base, the value so far,
	// which is nil if there is none. A nil function is a key that only trusted
	// files may set.
	tightens func(value, base any) bool
}

// settingKeys lists the settings in the order of the manual.
func settingKeys() []key {
	return []key{
		{"model", text, nil},
		{"sandbox", oneOf(sandboxes...), stricterSandbox},
		{"network", boolean, closes},
		{"max_turns", count, lower(runner.DefaultTurns)},
		{"max_tool_calls", count, lower(0)},
		{"max_tokens", large, lower(int64(0))},
		{"max_cost", positive, lower(0.0)},
		{"timeout", duration, lower(time.Duration(0))},
		{"idle_timeout", duration, lower(time.Duration(0))},
		{"tool_timeout", duration, lower(time.Duration(0))},
		{"background_terminal_max_timeout", duration, nil},
		{"on_ask", oneOf("deny", "fail", "defer", "approver"), nil},
		{"approver", text, nil},
		{"approval_timeout", duration, nil},
		{"on_deny", oneOf("continue", "report", "fail"), nil},
		{"max_denials", count, lower(runner.DefaultDenials)},
		{"loop_warn", count, nil},
		{"loop_stop", count, lower(runner.DefaultLoopStop)},
		{"tool_output_token_limit", count, lower(tools.DefaultLimit.Tokens)},
		{"allow_login_shell", boolean, closes},
		{"shell", text, nil},
		{"format", text, nil},
		{"color", oneOf("auto", "always", "never"), nil},
		{"ephemeral", boolean, nil},
	}
}

// sandboxes are the modes of the sandbox, strictest first.
var sandboxes = []string{"read-only", "workspace-write", "off"}

func stricterSandbox(value, base any) bool {
	if base == nil {
		base = "workspace-write"
	}
	v, _ := value.(string)
	b, _ := base.(string)
	return slices.Index(sandboxes, v) < slices.Index(sandboxes, b)
}

// closes tells whether a switch is turned off, whatever it was.
func closes(value, _ any) bool { return value == false }

// lower makes a test for limits. fallback holds where nothing else is said; 0
// is no limit, below which every other one is.
func lower[T cmp.Ordered](fallback T) func(value, base any) bool {
	return func(value, base any) bool {
		v, ok := value.(T)
		if !ok {
			return false
		}
		b, ok := base.(T)
		if !ok {
			b = fallback
		}
		var none T
		return b == none || v < b
	}
}

func text(v strict.Value) (any, error) { return v.Filled() }

func boolean(v strict.Value) (any, error) { return v.Bool() }

func positive(v strict.Value) (any, error) { return v.Positive() }

func duration(v strict.Value) (any, error) { return v.Duration() }

func large(v strict.Value) (any, error) { return v.Int(1) }

func count(v strict.Value) (any, error) {
	n, err := v.Int(1)
	return int(min(n, 1<<31-1)), err
}

func oneOf(known ...string) func(strict.Value) (any, error) {
	return func(v strict.Value) (any, error) { return v.OneOf(known...) }
}
