package tools

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the description
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"drover/output/event"
	"drover/tools/patch"
	"drover/tools/policy"
)

//go:embed patch.md
var patchDoc string

// patchGrammar is the format of a patch in Lark. The parser accepts more.
const patchGrammar = `start: begin section+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
section: add | delete | update
add: "*** Add File: " path LF added+
delete: "*** Delete File: " path LF
update: "*** Update File: " path LF move? change?
move: "*** Move to: " path LF
change: (anchor | edit)+ eof?
anchor: ("@@" | "@@ " /(.+)/) LF
edit: ("+" | "-" | " ") /(.*)/ LF
added: "+" /(.*)/ LF
eof: "*** End of File" LF
path: /(.+)/
%import common.LF
`

// applyPatch edits files with a patch, all of it or nothing.
var applyPatch = New(Def[patchInput]{
	Name:     "apply_patch",
	Doc:      patchDoc,
	Grammar:  patchGrammar,
	Reads:    true,
	Writes:   true,
	Approval: "on-failure",
	Decode:   decodePatch,
	Display:  func(in patchInput, env Env) string { return in.display(env) },
	Actions:  func(in patchInput, env Env) ([]policy.Action, error) { return in.actions(env), nil },
	Run: func(_ context.Context, in patchInput, env Env) (Result, error) {
		return in.run(env), nil
	},
})

// patchInput is one patch, and for one that came through a shell the folder in
// which it was called.
type patchInput struct {
	Input string `json:"input" jsonschema:"The whole patch."`

	patch *patch.Patch
	dir   string // empty: the session's folder
	shell bool
}

// verificationFailed precedes whatever is wrong with a patch before it is
// applied.
const verificationFailed = "apply_patch verification failed: "

func decodePatch(text string) (patchInput, error) {
	p, err := patch.Parse(text)
	if err != nil {
		return patchInput{}, fmt.Errorf(verificationFailed+"%w", err)
	}
	if len(p.Sections) == 0 {
		return patchInput{}, errors.New("patch rejected: empty patch")
	}
	return patchInput{Input: text, patch: p}, nil
}

// redirectPatch answers a command that is nothing but a patch with the call of
// apply_patch, so that both meet the same policy. workdir is the absolute folder
// of the command. Other commands yield nil.
func redirectPatch(argv []string, workdir string, env Env) (*Call, error) {
	text, dir, found, err := patch.FromCommand(argv)
	if !found {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf(verificationFailed+"%w", err)
	}
	in, err := decodePatch(text)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(workdir, dir)
	}
	in.dir, in.shell = dir, true
	return &Call{
		Display: display(in.display(env)),
		Actions: in.actions(env),
		Run:     func(_ context.Context, env Env) (Result, error) { return in.run(env), nil },
	}, nil
}

func (in patchInput) place(env Env) patch.Place {
	p := patch.Place{Files: patchFiles{env.Files}, Dir: in.dir, Base: env.Cwd, Real: env.Files.real}
	if p.Dir == "" {
		p.Dir = env.Cwd
	}
	return p
}

// actions are a write for each file added or updated, a delete for each deleted,
// and both for a move.
func (in patchInput) actions(env Env) []policy.Action {
	place := in.place(env)
	var out []policy.Action
	for _, s := range in.patch.Sections {
		path := place.Abs(s.Path)
		switch {
		case s.Action == patch.Delete:
			out = append(out, env.Files.DeleteAction(path))
		case s.MoveTo != "" && place.Abs(s.MoveTo) != path:
			out = append(out, env.Files.DeleteAction(path), env.Files.WriteAction(place.Abs(s.MoveTo)))
		default:
			out = append(out, env.Files.WriteAction(path))
		}
	}
	return out
}

func (in patchInput) display(env Env) string {
	place := in.place(env)
	var parts []string
	for _, s := range in.patch.Sections {
		name := env.Files.Rel(place.Abs(s.Path))
		if s.MoveTo != "" {
			name += " → " + env.Files.Rel(place.Abs(s.MoveTo))
		}
		if s.Action == patch.Delete {
			parts = append(parts, name+" deleted")
			continue
		}
		added, removed := strings.Count(s.Content, "\n"), 0
		for _, c := range s.Chunks {
			for _, l := range c.Lines {
				switch l.Op {
				case patch.Insert:
					added++
				case patch.Remove:
					removed++
				}
			}
		}
		parts = append(parts, fmt.Sprintf("%s +%d −%d", name, added, removed))
	}
	return "patch: " + fewFiles(parts)
}

// fewFiles joins what fits on a display line.
func fewFiles(parts []string) string {
	const room = 150
	line := parts[0]
	for i, part := range parts[1:] {
		if len(line)+len(part) > room {
			return fmt.Sprintf("%s and %d more", line, len(parts)-1-i)
		}
		line += ", " + part
	}
	return line
}

func (in patchInput) run(env Env) Result {
	start := time.Now()
	plan, err := patch.NewPlan(in.patch, in.place(env))
	if err != nil {
		return Fail("patch_mismatch", env.Output.Cut(safeText(verificationFailed+err.Error())))
	}
	if err := mayWrite(env.Files, plan.Changes); err != nil {
		return Fail("write_refused", safeText("patch rejected: "+err.Error()))
	}
	if err := plan.Apply(); err != nil {
		return Result{Text: safeText(in.layout(1, start, err.Error()+"\n")), IsError: true, Code: "patch_failed", Display: firstLine(err.Error())}
	}
	text := patch.Summary(plan.Changes)
	var files []string
	for _, c := range plan.Changes {
		env.Emit(fileChanged(env.CallID, c))
		for _, note := range c.Notes {
			text += "Note: " + note + ".\n"
		}
		if c.Lenient {
			text += "Note: " + c.Spelled + " matched only when spaces or typographic punctuation were disregarded; lines that the patch keeps were left as they are.\n"
		}
		files = append(files, fmt.Sprintf("%s +%d −%d", c.Path, c.Added, c.Removed))
	}
	text = in.layout(0, start, text)
	return Result{Text: env.Output.Cut(text), Truncated: !env.Output.Fits(text), OutputBytes: int64(len(text)), Display: display(fewFiles(files))}
}

// layout is the form in which commands report, which models know for patches.
func (in patchInput) layout(code int, start time.Time, output string) string {
	seconds := strconv.FormatFloat(math.Round(time.Since(start).Seconds()*10)/10, 'f', -1, 64)
	text := fmt.Sprintf("Exit code: %d\nWall time: %s seconds\nOutput:\n%s", code, seconds, output)
	if in.shell {
		text = "Warning: apply_patch was requested through the shell. Use the apply_patch tool instead.\n" + text
	}
	return text
}

// mayWrite refuses a patch as a whole before its first write when one of its
// files lies outside the writable folders.
func mayWrite(files *Files, changes []patch.Change) error {
	for _, c := range changes {
		if c.Kind != patch.Deleted {
			if _, err := files.place(c.Abs); err != nil {
				return err
			}
		}
		for _, removed := range []string{c.OldAbs, c.Abs} {
			if removed == "" || removed == c.Abs && c.Kind != patch.Deleted {
				continue
			}
			if _, err := files.placeReal(removed, filepath.Join(files.Real(filepath.Dir(removed)), filepath.Base(removed))); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileChanged is the event for one applied change.
func fileChanged(callID string, c patch.Change) event.FileChangedEvent {
	e := event.FileChangedEvent{
		ToolCallID: callID, Path: c.Path, Kind: event.FileKind(c.Kind), OldPath: c.OldPath,
		Added: c.Added, Removed: c.Removed, Diff: c.Diff, Lenient: c.Lenient,
	}
	if c.Before != nil {
		e.BeforeSHA256 = hexSum(c.Before)
	}
	if c.After != nil {
		e.AfterSHA256 = hexSum(c.After)
	}
	return e
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// patchFiles gives the patch engine the confined files.
type patchFiles struct{ *Files }

// ReadFile refuses what is no regular file, such as a pipe, which would wait.
func (f patchFiles) ReadFile(name string) ([]byte, error) {
	info, err := f.Lstat(f.Real(name))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is not a regular file")}
	}
	return f.Files.ReadFile(name)
}

// MkdirAll creates a folder beneath the writable roots.
func (f patchFiles) MkdirAll(name string) error {
	_, err := f.Mkdir(name)
	return err
}
