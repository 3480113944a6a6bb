package cmd

import (
	"errors"
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

// String is the default in help texts, which is none.
func (p *pairs) String() string { return "" }
