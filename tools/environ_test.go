package tools

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShellEnvironmentPolicy(t *testing.T) {
	environ := []string{"PATH=/bin", "Home=/h", "API_KEY=k", "my_secret=s", "GH_TOKEN=t", "AWS_REGION=r", "A=1", "A=2", "=odd", "broken"}
	tests := []struct {
		name   string
		policy ShellEnvironment
		want   []string
	}{
		{"everything", ShellEnvironment{}, []string{"A=2", "API_KEY=k", "AWS_REGION=r", "GH_TOKEN=t", "Home=/h", "PATH=/bin", "PWD=/w", "my_secret=s"}},
		{"core", ShellEnvironment{Inherit: "core"}, []string{"Home=/h", "PATH=/bin", "PWD=/w"}},
		{"none and set", ShellEnvironment{Inherit: "none", Set: map[string]string{"X_KEY": "1"}, DropSecretNames: true}, []string{"PWD=/w", "X_KEY=1"}},
		{"an unknown word passes nothing", ShellEnvironment{Inherit: "al"}, []string{"PWD=/w"}},
		{"secret names", ShellEnvironment{DropSecretNames: true}, []string{"A=2", "AWS_REGION=r", "Home=/h", "PATH=/bin", "PWD=/w"}},
		{"exclude", ShellEnvironment{Exclude: []string{"aws_*", "?"}}, []string{"API_KEY=k", "GH_TOKEN=t", "Home=/h", "PATH=/bin", "PWD=/w", "my_secret=s"}},
		{"include only, also of set", ShellEnvironment{IncludeOnly: []string{"PATH", "s*"}, Set: map[string]string{"SET": "1", "GONE": "2"}}, []string{"PATH=/bin", "PWD=/w", "SET=1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Commands{Environ: environ, Environment: tt.policy}.environment("/w", nil, nil)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemovedNamesNeverComeBack(t *testing.T) {
	c := Commands{
		Environ: []string{"KEY=1", "PATH=/bin"}, Remove: []string{"KEY"},
		Environment: ShellEnvironment{Set: map[string]string{"KEY": "2"}, IncludeOnly: []string{"*"}},
	}
	got := c.environment("/w", map[string]string{"KEY": "3"}, nil)
	if diff := cmp.Diff([]string{"PATH=/bin", "PWD=/w"}, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestKeysArePassedByNameOnly(t *testing.T) {
	c := Commands{
		Environ: []string{"KEY=1", "OTHER_KEY=2", "PATH=/bin"}, Remove: []string{"KEY", "OTHER_KEY"},
		Environment: ShellEnvironment{PassKeys: []string{"KEY", "*"}},
	}
	if diff := cmp.Diff([]string{"KEY=1", "PATH=/bin", "PWD=/w"}, c.environment("/w", nil, nil)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	// What the rest of the policy drops stays dropped.
	c.Environment.Exclude = []string{"K*"}
	if diff := cmp.Diff([]string{"PATH=/bin", "PWD=/w"}, c.environment("/w", nil, nil)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestNamePatterns(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"", "", true}, {"", "A", false}, {"A", "A", true}, {"A?", "A", false}, {"A?", "AB", true},
		{"*KEY*", "KEY", true}, {"*KEY*", "MYKEYS", true}, {"*KEY", "KEYS", false}, {"A*B*C", "AxBxBxC", true},
		{"A*B*C", "AxBxBx", false}, {"**", "x", true}, {"[A]", "A", false},
	}
	for _, tt := range tests {
		if got := matchesName(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.name, got)
		}
	}
}
