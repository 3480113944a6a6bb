package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/viper"

	"drover/runner"
	"drover/runner/model"
	"drover/runner/strict"
	"drover/runner/textfile"
	"drover/tools"
)

const (
	fileName = "config.yaml"
	// projectDir is the folder of a project that holds its config.
	projectDir = ".drover"
	// maxFile bounds a config file in bytes.
	maxFile = 1 << 20
)

// file is one config file, checked. Maps whose keys belong to the user never go
// through viper, which would make them lower case.
type file struct {
	path     string
	settings map[string]any
	lines    map[string]int
	// given are the other keys of the file, in its order.
	given            []string
	providers        map[string]model.ProviderConfig
	shellEnvironment *tools.ShellEnvironment
	redact           []string
	hooks            []runner.Hook
}

func source(path string) strict.Source {
	return strict.Source{Kind: "config file", Name: path, Code: "config_invalid"}
}

// readUserFile reads the user's file; nil is none.
func readUserFile(path string) (*file, error) {
	data, err := textfile.Plain(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	return parseFile(path, data)
}

// readProjectFile reads the nearest project file of the folder; nil is none.
// The file may come from anybody: it cannot lead out of the project, where an
// error message could then show something private, and it must be a plain file,
// since opening a pipe waits for ever.
func readProjectFile(cwd string) (*file, error) {
	root := runner.RepositoryRoot(cwd)
	for dir := cwd; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, projectDir, fileName)
		if _, err := os.Lstat(path); err == nil {
			return openProjectFile(dir, path)
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return nil, unreadable(path, err)
		}
		if dir == root {
			return nil, nil
		}
	}
}

func openProjectFile(dir, path string) (*file, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer root.Close()
	name := filepath.Join(projectDir, fileName)
	data, err := textfile.PlainIn(root, name, maxFile)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return parseFile(path, data)
}

func unreadable(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	switch {
	case errors.Is(err, textfile.ErrNotPlain):
		return source(path).Errorf("%w", err)
	case errors.Is(err, textfile.ErrTooLarge):
		return source(path).Errorf("it is larger than %d MiB", maxFile>>20)
	}
	return source(path).Errorf("it cannot be read: %w", err)
}

func parseFile(path string, data []byte) (*file, error) {
	root, err := strict.Parse(source(path), data)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, settings: map[string]any{}, lines: map[string]int{}}
	return f, root.Each(f.keys())
}

// keys read everything a file may hold.
func (f *file) keys() strict.Keys {
	keys := strict.Keys{
		"providers": func(v strict.Value) (err error) {
			f.note("providers", v)
			f.providers, err = readProviders(v, filepath.Dir(f.path))
			return err
		},
		"shell_environment_policy": func(v strict.Value) (err error) {
			f.note("shell_environment_policy", v)
			f.shellEnvironment, err = readShellEnvironment(v)
			return err
		},
		"redact": func(v strict.Value) (err error) {
			f.note("redact", v)
			f.redact, err = v.Texts()
			return err
		},
		"hooks": func(v strict.Value) (err error) {
			f.note("hooks", v)
			f.hooks, err = readHooks(v, f.path)
			return err
		},
	}
	for _, k := range settingKeys() {
		keys[k.name] = func(v strict.Value) error {
			value, err := k.read(v)
			f.settings[k.name] = value
			f.lines[k.name] = v.Line()
			return err
		}
	}
	return keys
}

func (f *file) note(name string, v strict.Value) {
	f.given = append(f.given, name)
	f.lines[name] = v.Line()
}

// tighten takes out of an untrusted file everything that is not stricter than
// what is set so far, and says what that was.
func (f *file) tighten(base *viper.Viper) (warnings []string) {
	leftOut := func(name, why string) {
		warnings = append(warnings, fmt.Sprintf("%s line %d: %s is left out: %s", f.path, f.lines[name], name, why))
	}
	for _, k := range settingKeys() {
		value, ok := f.settings[k.name]
		if !ok {
			continue
		}
		switch {
		case k.tightens == nil:
			leftOut(k.name, "only a trusted project may set it")
		case value == base.Get(k.name):
			// It says what holds anyway.
			continue
		case !k.tightens(value, base.Get(k.name)):
			leftOut(k.name, "an untrusted project may only make it stricter")
		default:
			continue
		}
		delete(f.settings, k.name)
	}
	for _, name := range f.given {
		leftOut(name, "only a trusted project may set it")
	}
	f.providers, f.shellEnvironment, f.redact, f.hooks = nil, nil, nil, nil
	return warnings
}
