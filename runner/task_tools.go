package runner

import (
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"drover/runner/strict"
	"drover/tools"
)

// readTools reads the dynamic tools of a task.
func (t *Task) readTools(v strict.Value) error {
	names := map[string]bool{}
	return v.Items(func(v strict.Value) error {
		d, err := t.readTool(v)
		if err != nil {
			return err
		}
		if names[d.Name] {
			return v.Errorf("there are two tools %q", d.Name)
		}
		names[d.Name] = true
		t.Tools = append(t.Tools, d)
		return nil
	})
}

func (t *Task) readTool(v strict.Value) (d tools.Dynamic, err error) {
	if !v.IsMap() {
		return d, v.Errorf("it must be a mapping with name, description, and command or url")
	}
	if err := v.Each(t.toolKeys(&d)); err != nil {
		return d, err
	}
	if err := d.Check(); err != nil {
		return d, v.Errorf("%w", err)
	}
	return d, nil
}

// toolKeys read one dynamic tool.
func (t *Task) toolKeys(d *tools.Dynamic) strict.Keys {
	return strict.Keys{
		"name":        func(v strict.Value) (err error) { d.Name, err = v.Filled(); return err },
		"description": func(v strict.Value) (err error) { d.Doc, err = v.Filled(); return err },
		"url":         func(v strict.Value) (err error) { d.URL, err = v.Filled(); return err },
		"timeout":     func(v strict.Value) (err error) { d.Timeout, err = v.Duration(); return err },
		"headers":     func(v strict.Value) (err error) { d.Headers, err = v.TextMap(); return err },
		"command": func(v strict.Value) (err error) {
			d.Command, err = t.readArgv(v)
			return err
		},
		"parameters": func(v strict.Value) (err error) {
			d.Parameters, err = readParameters(v)
			return err
		},
	}
}

// readArgv reads an argument vector. A program with a slash in its name is a
// path, relative to the file; any other is looked up on PATH.
func (t *Task) readArgv(v strict.Value) ([]string, error) {
	var argv []string
	err := v.Items(func(item strict.Value) error {
		word, err := item.Text()
		argv = append(argv, word)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(argv) == 0 || strings.TrimSpace(argv[0]) == "":
		return nil, v.Errorf("it names no program; write an argument vector such as [./deploy.sh, --json]")
	case strings.Contains(argv[0], "/"):
		argv[0] = t.abs(argv[0])
	}
	return argv, nil
}

// readParameters reads the schema of a tool's arguments.
func readParameters(v strict.Value) (json.RawMessage, error) {
	if !v.IsMap() {
		return nil, v.Errorf("it must be a JSON Schema, such as {type: object, properties: {name: {type: string}}}")
	}
	raw, err := v.JSON()
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, v.Errorf("it is no JSON Schema: %w", err)
	}
	if name := wrongType(&s); name != "" {
		return nil, v.Errorf("JSON has no type %q", name)
	}
	return raw, nil
}
