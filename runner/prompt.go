package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"drover/runner/textfile"
)

// systemPrompt says what the agent is and how its world works. It is short on
// purpose: every byte of it is paid for with every request.
func systemPrompt(r *run) string {
	var b strings.Builder
	b.WriteString(`You are a coding agent run by drover. Nobody is watching and nobody will answer: work until the task is done, then give the final answer. Never ask a question; where something is open, take the most sensible choice and say so in the final answer.

Tools
- Look before you change. Read the files that matter, make the smallest change that solves the task, and verify it by running what proves it (tests, build).
- Prefer search_in_files and list_dir to shell commands for finding things, and apply_patch to any other way of editing. Independent calls may be sent together; they run in parallel where that is safe.
- Commands run without a terminal and without input, and end when they are done. Do not start editors, pagers, watchers or servers that never end.
- Long output is cut in the middle; ask for less, or for the part you need.
- A message after a call that failed tells you what to send instead. Do not repeat a failed call unchanged.

Policy
- Every call is judged by a policy file before anything happens. A refusal names the rule or the default. It is final: do not try the same action in another spelling. Find an allowed way, or finish without it and name in the final answer what was refused.
- Files outside the working folder, and .git, .drover and .agents in it, are not yours to change.
`)
	fmt.Fprintf(&b, "\nWorking folder: %s\n", r.Cwd)
	switch {
	case r.asks && r.canAsk():
		b.WriteString("\nQuestions: somebody can answer in this run. Ask with request_user_input only what you cannot decide sensibly yourself.\n")
	case r.asks:
		b.WriteString("\nQuestions: some were answered before the run. Instead of guessing, ask these with request_user_input, under exactly these ids: " +
			strings.Join(slices.Sorted(maps.Keys(r.Answers)), ", ") + ". All others you decide yourself.\n")
	}
	if len(r.Checks) > 0 {
		b.WriteString("\nChecks: after your final answer these commands must succeed, or their output comes back to you:\n")
		for _, c := range r.Checks {
			b.WriteString("- " + c + "\n")
		}
	}
	if r.Schema != nil {
		b.WriteString("\nThe final answer must be one JSON value, nothing around it, that matches this JSON Schema:\n")
		b.Write(r.Schema.Raw)
		b.WriteString("\n")
	}
	b.WriteString("\nStop when the task is done and verified, or when it cannot be done. The final answer is a message without tool calls: say in a few sentences what you changed, how you know that it works, and what is left.\n")
	if r.Mode == ModePlan {
		b.WriteString(planPrompt)
	}
	if r.DryRun {
		b.WriteString(dryPrompt)
	}
	return b.String()
}

// instructionNames are the files that projects leave for agents; the first
// that exists in a folder is read.
var instructionNames = []string{"AGENTS.md"}

// maxInstructions bounds all instruction files together, in bytes.
const maxInstructions = 32 << 10

// maxInstructionFile bounds what is read of one file to find its hash.
const maxInstructionFile = 4 << 20

// LoadInstructions reads the instruction files from the repository's root down
// to dir. Files above a repository are not read, and a link out of the
// repository is not followed. What is over the limit is left out with a remark
// in the text. A file that cannot be used is skipped, and skipped says which and
// why: whoever can write to a repository must not be able to stop its runs.
func LoadInstructions(dir string) (found []Instruction, skipped []string) {
	left := maxInstructions
	root := RepositoryRoot(dir)
	handle, err := os.OpenRoot(root)
	if err != nil {
		return nil, []string{fmt.Sprintf("%s cannot be read: %v", strings.Join(instructionNames, ", "), pathReason(err))}
	}
	defer handle.Close()
	for _, folder := range foldersBetween(root, dir) {
		for _, name := range instructionNames {
			rel, err := filepath.Rel(root, filepath.Join(folder, name))
			if err != nil {
				continue
			}
			i, err := readInstruction(handle, rel)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				skipped = append(skipped, fmt.Sprintf("%s is not read: %v", rel, pathReason(err)))
				continue
			}
			if len(i.Text) > left {
				i.Text = strings.ToValidUTF8(i.Text[:left], "") + "\n[the rest was left out: instruction files are limited to 32 KiB]"
			}
			left = max(0, left-len(i.Text))
			if strings.TrimSpace(i.Text) != "" {
				found = append(found, i)
			}
			break
		}
	}
	return found, skipped
}

func readInstruction(root *os.Root, name string) (Instruction, error) {
	data, err := textfile.PlainIn(root, name, maxInstructionFile)
	if err != nil {
		return Instruction{}, err
	}
	if !utf8.Valid(data) {
		return Instruction{}, errors.New("it is not UTF-8 text")
	}
	sum := sha256.Sum256(data)
	return Instruction{Path: name, Text: string(data), SHA256: hex.EncodeToString(sum[:])}, nil
}

// RepositoryRoot is the nearest folder at or above dir that holds .git, or dir
// itself.
func RepositoryRoot(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if filepath.Dir(at) == at {
			return dir
		}
	}
}

// foldersBetween lists the folders from root down to dir.
func foldersBetween(root, dir string) []string {
	folders := []string{root}
	rel, err := filepath.Rel(root, dir)
	if err != nil || rel == "." {
		return folders
	}
	at := root
	for _, name := range strings.Split(rel, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		folders = append(folders, at)
	}
	return folders
}
