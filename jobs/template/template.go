// Package template fills the values of a table's row into a text.
//
// A placeholder is {column}. {{ and }} stand for a brace. Any other brace is
// text: prompts are full of JSON. Only what looks like a name, letters, digits,
// underscores, hyphens, dots and spaces, must be a column, so that a misspelt one
// is found before anything is paid for. Values are put in once and never looked
// at again, whatever braces they hold. The package does nothing else.
package template

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"drover/output/fault"
)

// Template is a text with places for the values of a row.
type Template struct {
	// parts alternate with the columns: part, column, part, …, part.
	parts   []string
	columns []int
	names   []string
}

// Parse reads a template for rows with the given columns. Its error is a fault
// of class Config, or Usage for a text of blanks.
func Parse(text string, columns []string) (*Template, error) {
	if strings.TrimSpace(text) == "" {
		return nil, &fault.Error{Code: "no_instruction", What: "instruction must be non-empty",
			Fix: "say what is to be done with each row, for example --instruction 'Triage {title}'", Exit: fault.Usage}
	}
	at := make(map[string]int, len(columns))
	for i, name := range columns {
		at[name] = i
	}
	t := &Template{}
	var b strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:i])
		text = text[i:]
		if strings.HasPrefix(text, "{{") || strings.HasPrefix(text, "}}") {
			b.WriteByte(text[0])
			text = text[2:]
			continue
		}
		name, length := placeholder(text, at)
		column, known := at[name]
		switch {
		case length == 0:
			b.WriteByte(text[0])
			text = text[1:]
		case !known:
			return nil, unknown(name, columns)
		default:
			t.parts, t.columns = append(t.parts, b.String()), append(t.columns, column)
			if !slices.Contains(t.names, name) {
				t.names = append(t.names, name)
			}
			b.Reset()
			text = text[length:]
		}
	}
	t.parts = append(t.parts, b.String())
	return t, nil
}

// placeholder returns the name of the placeholder that text begins with and its
// length in bytes, or 0 if the brace is text. The longest column name counts,
// because it may hold braces itself.
func placeholder(text string, at map[string]int) (name string, length int) {
	if text[0] != '{' {
		return "", 0
	}
	for column := range at {
		if len(column) > len(name) && len(text) > len(column)+1 && text[1:1+len(column)] == column && text[1+len(column)] == '}' {
			name = column
		}
	}
	if name != "" {
		return name, len(name) + 2
	}
	end := strings.IndexByte(text, '}')
	if end < 2 {
		return "", 0
	}
	name = text[1:end]
	if strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("_-. ", r)
	}) || strings.TrimSpace(name) == "" {
		return "", 0
	}
	return name, end + 1
}

// maxListed is how many columns an error names.
const maxListed = 20

func unknown(name string, columns []string) error {
	f := &fault.Error{Code: "template_column", What: fmt.Sprintf("the instruction cannot be used: it names {%s}", name),
		Why: "the table has no such column", Exit: fault.Config}
	var list []string
	for _, c := range columns[:min(len(columns), maxListed)] {
		list = append(list, fmt.Sprintf("%q", c))
	}
	if len(columns) > maxListed {
		list = append(list, "…")
	}
	f.Fix = "use one of " + strings.Join(list, ", ") + ", or write {{" + name + "}} for the text itself"
	if near := nearest(name, columns); near != "" {
		f.Why += fmt.Sprintf(", did you mean {%s}?", near)
	}
	return f
}

// nearest is the column that differs only in case and blanks, or the nearest by
// spelling.
func nearest(name string, columns []string) string {
	plain := func(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
	for _, c := range columns {
		if plain(c) == plain(name) {
			return c
		}
	}
	return fault.Nearest(name, columns)
}

// Render fills in the values of a row, in the order of the columns.
func (t *Template) Render(values []string) string {
	var b strings.Builder
	for i, part := range t.parts {
		b.WriteString(part)
		if i < len(t.columns) {
			b.WriteString(values[t.columns[i]])
		}
	}
	return b.String()
}

// Columns are the names of the columns that the template uses, in order.
func (t *Template) Columns() []string { return slices.Clone(t.names) }
