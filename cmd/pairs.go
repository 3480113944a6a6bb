package cmd

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// pairs is a flag that is given once for each pair: KEY=VALUE, split at the
// first equals sign. Whatever else the value holds, commas too, belongs to it.
type pairs map[string]string

// Set adds one pair; the last value of a key counts.
func (p *pairs) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return errors.New("it is not KEY=VALUE")
	}
	if *p == nil {
		*p = pairs{}
	}
	(*p)[key] = value
	return nil
}

// Type is what stands for the value in help texts.
func (p *pairs) Type() string { return "KEY=VALUE" }

// Append, Replace and GetSlice make the pairs known to whoever copies flags.
func (p *pairs) Append(text string) error { return p.Set(text) }

// Replace sets the pairs anew.
func (p *pairs) Replace(texts []string) error {
	*p = nil
	for _, text := range texts {
		if err := p.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice returns the pairs as they are written on a command line.
func (p *pairs) GetSlice() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(*p)) {
		out = append(out, key+"="+(*p)[key])
	}
	return out
}

// String is the default in help texts, which is none.
func (p *pairs) String() string { return "" }
