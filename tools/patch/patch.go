// Package patch reads and applies patches in the "*** Begin Patch" format that
// language models write.
//
// Parse turns text into a Patch. NewPlan checks every section against the disk
// and computes each file's new bytes without writing; Plan.Apply then writes all
// of them or none. Main is the other form: the program of that name, which
// writes section after section and stops at the first failure.
//
// Bytes that a patch does not name stay as they are: line endings, byte-order
// mark, final newline, mode, and context lines that matched only loosely. The
// package reaches the disk through Files alone and decides nothing about
// permission; whoever hands in the Files confines it.
package patch

import (
	"fmt"
	"io/fs"
)

// Patch is a parsed patch: its sections in the order of the text.
type Patch struct {
	// Sections may be empty; such a patch parses but cannot be applied.
	Sections []Section
}

// Action is what a section does with its file.
type Action string

// The three kinds of section. A move is an Update with MoveTo.
const (
	Add    Action = "add"
	Update Action = "update"
	Delete Action = "delete"
)

// Section is the part of a patch about one file.
type Section struct {
	Action Action
	// Path is the file as spelled in the patch, never empty.
	Path string
	// MoveTo is the new name as spelled in the patch; empty means no move.
	// Only an Update has it.
	MoveTo string
	// Content is the whole file of an Add. Its lines end in LF.
	Content string
	// Chunks are the changes of an Update in file order, at least one.
	Chunks []Chunk
	// Line is where the section's header stands; the begin marker is line 1.
	Line int
}

// Chunk is one contiguous change within a file.
type Chunk struct {
	// Anchors are the texts behind the @@ headers, each a line to be found after
	// the one before it. Bare headers leave no anchor.
	Anchors []string
	// Lines is the body, at least one line.
	Lines []Line
	// EndOfFile says that the body must match the last lines of the file.
	EndOfFile bool
	// Line is where the chunk starts in the patch.
	Line int
}

// Op says what a line of a chunk does: ' ' keeps, '+' adds, '-' removes.
type Op byte

// The three operations, spelled as in a patch.
const (
	Keep   Op = ' '
	Insert Op = '+'
	Remove Op = '-'
)

// Line is one line of a chunk, without its operation and line ending.
type Line struct {
	Op   Op
	Text string
}

// ParseError says why a text is not a patch.
type ParseError struct {
	// Line is the line in the patch, 1 being the begin marker. It is 0 when the
	// whole text is meant.
	Line int
	// Msg is the reason without a prefix.
	Msg string
}

// Error returns the message in the form that a tool reports.
func (e *ParseError) Error() string {
	if e.Line == 0 {
		return "invalid patch: " + e.Msg
	}
	return fmt.Sprintf("invalid hunk at line %d, %s", e.Line, e.Msg)
}

// Standalone returns the message in the form that the program prints.
func (e *ParseError) Standalone() string {
	if e.Line == 0 {
		return "Invalid patch: " + e.Msg
	}
	return fmt.Sprintf("Invalid patch hunk on line %d: %s", e.Line, e.Msg)
}

// Files is the disk as this package sees it. Names are absolute and clean.
type Files interface {
	// Lstat describes what is at name, without following a link there.
	Lstat(name string) (fs.FileInfo, error)
	// ReadFile returns the content of the regular file that name leads to. It
	// must not wait on a pipe or a device.
	ReadFile(name string) ([]byte, error)
	// WriteFile replaces or creates a file in one step, so that a reader sees
	// the old or the new content. An existing file keeps its mode; a link at
	// name stays, and the file it leads to is replaced. A new file gets exactly
	// perm, or the usual mode of new files when perm is 0.
	WriteFile(name string, data []byte, perm fs.FileMode) error
	// Remove removes a file, a link or an empty folder.
	Remove(name string) error
	// MkdirAll creates a folder and the folders above it.
	MkdirAll(name string) error
}

// Place is where a patch is applied.
type Place struct {
	Files Files
	// Dir is the absolute folder where relative paths of the patch start.
	Dir string
	// Base is the absolute folder that shown paths are relative to; empty
	// means Dir. Real is the same folder after all links, if it is another: a
	// path below it is shown in the same way.
	Base, Real string
}

// Kind is what happens to a file.
type Kind string

// The kinds of change. A moved file is a Renamed one, edited or not.
const (
	Added    Kind = "add"
	Modified Kind = "modify"
	Deleted  Kind = "delete"
	Renamed  Kind = "rename"
)

// Change is the effect of one section on the disk.
type Change struct {
	Kind Kind
	// Spelled is the path as the patch spells it; for a move the new one.
	Spelled string
	// Path is relative to the place's base with forward slashes when the file
	// lies below it, else absolute. For a move it is the new path.
	Path string
	// OldPath is the path before a move in the same form, else empty.
	OldPath string
	// Abs and OldAbs are the absolute forms of Path and OldPath.
	Abs, OldAbs string
	// Before and After are the whole contents. Before is nil for an Added file,
	// After for a Deleted one.
	Before, After []byte
	// Added and Removed count lines of Diff.
	Added, Removed int
	// Diff is a unified diff with three lines of context. It is empty when the
	// content stays, and for a deleted file that is not UTF-8 text.
	Diff string
	// Lenient says that some line matched only when spaces or look-alike
	// punctuation were disregarded.
	Lenient bool
	// Notes are short sentences that whoever wrote the patch should read.
	Notes []string

	mode fs.FileMode // permission bits of the file before, 0 for an Added one
	stat fs.FileInfo // the source when it was verified, nil for an Added one
}
