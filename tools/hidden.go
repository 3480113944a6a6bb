package tools

import (
	"os"
	"path/filepath"

	"drover/tools/policy"
)

// hidden returns what a walk below root must pass over, or nil if nothing: the
// policy has allowed the folder as a whole, but may forbid paths in it. A file
// must be allowed to be read; a folder that no rule names is entered, because
// what is in it may be allowed.
func (e Env) hidden(root string) func(abs string) bool {
	if e.Judge == nil {
		return nil
	}
	real := e.Files.Real(root)
	return func(abs string) bool {
		v := e.judgeBelow(root, real, abs)
		if v.Effect == policy.Allow || v.RuleID != "" {
			return v.Effect != policy.Allow
		}
		info, err := os.Lstat(abs)
		return err != nil || !info.IsDir()
	}
}

// unnamed returns which entries below root a listing leaves out: those that a
// rule forbids to read.
func (e Env) unnamed(root string) func(abs string) bool {
	if e.Judge == nil {
		return func(string) bool { return false }
	}
	real := e.Files.Real(root)
	return func(abs string) bool {
		v := e.judgeBelow(root, real, abs)
		return v.Effect == policy.Deny && v.RuleID != ""
	}
}

// judgeBelow judges reading a path that a walk has found. No link lies between
// root and the path, so its real name is known without asking the disk.
func (e Env) judgeBelow(root, real, abs string) policy.Verdict {
	if rel, ok := below(root, abs); ok {
		return e.Judge(policy.Read(abs, filepath.Join(real, rel)))
	}
	return e.Judge(e.Files.ReadAction(abs))
}
