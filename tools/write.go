package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"drover/output/event"
	"drover/tools/patch"
	"drover/tools/policy"
)

// writeFile creates a file or replaces it as a whole.
var writeFile = New(Def[writeFileInput]{
	Name:     "write_file",
	Doc:      "Creates a file or replaces its whole content (at most 64 KiB). Read an existing file before replacing it; for small edits use apply_patch.",
	Writes:   true,
	Approval: "on-failure",
	Check:    checkWriteFile,
	Display:  func(in writeFileInput, env Env) string { return "write path: " + env.Files.Rel(in.Path) },
	Actions: func(in writeFileInput, env Env) ([]policy.Action, error) {
		return []policy.Action{env.Files.WriteAction(in.Path)}, nil
	},
	Run: runWriteFile,
})

type writeFileInput struct {
	Path    string `json:"path" jsonschema:"Absolute path."`
	Content string `json:"content" jsonschema:"The new content."`
}

// maxWriteBytes bounds the content, so that files grow by patches.
const maxWriteBytes = 64 << 10

func checkWriteFile(in writeFileInput, _ Env) error {
	if !filepath.IsAbs(in.Path) {
		return errors.New("path must be an absolute path")
	}
	if len(in.Content) > maxWriteBytes {
		return fmt.Errorf("content has %d bytes, more than the %d allowed; nothing was written: write the first part and append the rest with apply_patch", len(in.Content), maxWriteBytes)
	}
	return nil
}

func runWriteFile(_ context.Context, in writeFileInput, env Env) (Result, error) {
	path := env.Files.Abs(in.Path)
	before, err := readBefore(env.Files, path)
	if err != nil {
		return Fail("write_refused", safeText(fmt.Sprintf("cannot write %s: %v", path, err))), nil
	}
	after := []byte(in.Content)
	if err := env.Files.WriteFile(path, after, 0); err != nil {
		return Fail("write_failed", safeText(fmt.Sprintf("cannot write %s: %v", path, plainError(err)))), nil
	}
	e := event.FileChangedEvent{ToolCallID: env.CallID, Path: env.Files.Rel(path), Kind: event.FileKind(patch.Modified), AfterSHA256: hexSum(after)}
	e.Diff, e.Added, e.Removed = patch.Diff(e.Path, before, after)
	outcome := fmt.Sprintf("%d bytes, created", len(after))
	if before == nil {
		e.Kind = event.FileKind(patch.Added)
	} else {
		e.BeforeSHA256 = hexSum(before)
		outcome = fmt.Sprintf("%d bytes, overwritten (%d bytes before)", len(after), len(before))
	}
	env.Emit(e)
	return Result{Text: safeText(fmt.Sprintf("Wrote %s: %s.", path, outcome)), Display: outcome}, nil
}

// readBefore returns the content that is about to be replaced, nil if there is
// no file. Only regular files can be replaced.
func readBefore(files *Files, path string) ([]byte, error) {
	info, err := files.Lstat(files.Real(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, plainError(err)
	case info.IsDir():
		return nil, errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	data, err := files.ReadFile(path)
	if err != nil {
		return nil, plainError(err)
	}
	return append([]byte{}, data...), nil
}

// plainError is err without the operation and the paths, which the message has.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}
