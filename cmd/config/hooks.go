package config

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"drover/runner"
	"drover/runner/strict"
)

// readHooks reads the hooks of a file: events, groups with a matcher, commands.
// That is the shape in which other products have them, so that a list can be
// taken over; a path in it is relative to the file's folder.
func readHooks(v strict.Value, path string) ([]runner.Hook, error) {
	var hooks []runner.Hook
	keys := strict.Keys{}
	for _, at := range runner.HookEvents() {
		keys[string(at)] = func(v strict.Value) error {
			return v.Items(func(v strict.Value) error {
				group, err := readHookGroup(v, runner.Hook{Event: at, File: path})
				hooks = append(hooks, group...)
				return err
			})
		}
	}
	return hooks, v.Each(keys)
}

// readHookGroup reads the hooks that share a matcher.
func readHookGroup(v strict.Value, h runner.Hook) ([]runner.Hook, error) {
	if !v.IsMap() {
		return nil, v.Errorf("it must be a mapping with hooks and, for tools, a matcher")
	}
	var (
		hooks []runner.Hook
		given bool
	)
	err := v.Each(hookGroupKeys(&h.Matcher, func(v strict.Value) error {
		given = true
		return v.Items(func(v strict.Value) error {
			hook := h
			hook.Line = v.Line()
			if !v.IsMap() {
				return v.Errorf("it must be a mapping with type and command")
			}
			err := v.Each(hookKeys(&hook))
			hooks = append(hooks, hook)
			return err
		})
	}))
	if err != nil {
		return nil, err
	}
	if !given || len(hooks) == 0 {
		return nil, v.Errorf("it has no hooks")
	}
	for i := range hooks {
		// The matcher may stand behind the hooks that it is for.
		hooks[i].Matcher = h.Matcher
		if err := hooks[i].Check(); err != nil {
			return nil, v.Errorf("%w", err)
		}
	}
	return hooks, nil
}

func hookGroupKeys(matcher *string, hooks func(strict.Value) error) strict.Keys {
	return strict.Keys{"matcher": into(matcher, strict.Value.Text), "hooks": hooks}
}

func hookKeys(h *runner.Hook) strict.Keys {
	return strict.Keys{
		"type": func(v strict.Value) error {
			_, err := v.OneOf("command")
			return err
		},
		"name":    into(&h.Name, strict.Value.Filled),
		"command": into(&h.Command, strict.Value.Filled),
		"timeout": into(&h.Timeout, seconds),
		"on_error": func(v strict.Value) error {
			s, err := v.OneOf(string(runner.HookDeny), string(runner.HookReport), string(runner.HookIgnore))
			h.OnError = runner.OnHookError(s)
			return err
		},
		"sandbox": func(v strict.Value) error {
			_, err := v.OneOf("off")
			h.Rights.Off = err == nil
			return err
		},
		"network": into(&h.Rights.Network, strict.Value.Bool),
		"write": func(v strict.Value) error {
			list, err := v.Texts()
			for _, path := range list {
				if !filepath.IsAbs(path) {
					path = filepath.Join(filepath.Dir(h.File), path)
				}
				h.Rights.Write = append(h.Rights.Write, filepath.Clean(path))
			}
			return err
		},
	}
}

// maxHookSeconds is a day; what waits longer is a mistake.
const maxHookSeconds = 24 * 60 * 60

// seconds reads a duration, or a number of seconds.
func seconds(v strict.Value) (time.Duration, error) {
	text, err := v.Text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return v.Duration()
	}
	if !(n > 0 && n <= maxHookSeconds) {
		return 0, v.Errorf("%q is no number of seconds above 0 and at most %d", strict.Shorten(text), maxHookSeconds)
	}
	return time.Duration(n * float64(time.Second)), nil
}
