package policy

import (
	"path"
	"slices"
	"strings"
)

// The files that well-known programs touch follow from their words, well
// enough for deny and ask rules about paths to see them: an allow rule is
// never met so, and the sandbox bounds what other programs do. A computed word
// is only guessed.
//
// tee, touch, truncate, mkdir, mkfifo, chmod, chown, chgrp write what they
// name; rm, rmdir, unlink, shred delete it; cp, install, ln read all but the
// last and write that, mv deletes instead of reading; dd, sort, curl, wget,
// git and find write what an option names; find does to the folders that it
// searches what its actions do; sed -i writes, sed and awk write what their program names; cat,
// head, tail and their like read.

// touching is how a program treats the files that it names.
type touching struct {
	// all are the kinds for every operand, last those for the last one.
	all, last []Kind
	// skip is the number of operands in front that are no files.
	skip int
	// deep programs touch everything below what they name.
	deep bool
	// out are the options that name a file which is written.
	out []string
}

var (
	kindsRead   = []Kind{KindRead}
	kindsWrite  = []Kind{KindWrite}
	kindsDelete = []Kind{KindDelete}
	reading     = touching{all: kindsRead}
	writing     = touching{all: kindsWrite}
	changing    = touching{all: kindsWrite, skip: 1}
	copying     = touching{all: kindsRead, last: kindsWrite}
)

// touchingPrograms is the table of programs.
var touchingPrograms = map[string]touching{
	"tee": writing, "touch": writing, "truncate": writing, "mkdir": writing, "mkfifo": writing,
	"chmod": changing, "chown": changing, "chgrp": changing,
	"rm": {all: kindsDelete}, "rmdir": {all: kindsDelete}, "unlink": {all: kindsDelete}, "shred": {all: []Kind{KindWrite, KindDelete}},
	"cp": copying, "install": copying, "ln": {all: []Kind{KindRead, KindWrite}, last: kindsWrite, deep: true}, "mv": {all: []Kind{KindRead, KindDelete}, last: kindsWrite, deep: true},
	"dd": {}, "find": {}, "sed": reading, "gsed": reading, "awk": reading, "gawk": reading, "mawk": reading, "nawk": reading,
	"sort": {all: kindsRead, out: []string{"-o", "--output"}},
	"curl": {out: []string{"-o", "--output"}}, "wget": {out: []string{"-O", "--output-document"}}, "git": {out: []string{"--output"}},
	"cat": reading, "head": reading, "tail": reading, "less": reading, "more": reading, "nl": reading, "tac": reading, "rev": reading,
	"wc": reading, "uniq": reading, "cut": reading, "paste": reading, "od": reading, "xxd": reading, "hexdump": reading, "strings": reading,
	"base64": reading, "base32": reading, "md5sum": reading, "sha1sum": reading, "sha256sum": reading, "sha512sum": reading,
	"rsync": copying, "scp": copying, "patch": writing, ".": reading, "source": reading,
	"bash": reading, "sh": reading, "dash": reading, "zsh": reading, "ksh": reading,
	"cksum": reading, "diff": reading, "cmp": reading, "zcat": reading,
	"grep": {all: kindsRead, skip: 1}, "egrep": {all: kindsRead, skip: 1}, "fgrep": {all: kindsRead, skip: 1}, "rg": {all: kindsRead, skip: 1},
}

// touched adds the files that a command touches for the rules about paths.
func (a *analyser) touched(c *command, sc *scope) {
	if !a.p.hasPathRules() || !c.words[0].literal {
		return
	}
	name := path.Base(c.name())
	t, ok := touchingPrograms[name]
	if !ok {
		return
	}
	args := c.words[1:]
	operands, folder := t.operands(args)
	for i := 0; i < len(args) && t.out != nil; i++ {
		if value := t.output(args, i); value != nil {
			a.touch(kindsWrite, value, false, sc)
		}
	}
	switch name {
	case "dd":
		a.diskDump(args, sc)
		return
	case "find":
		a.found(args, sc)
		return
	case "rm":
		t.deep = holdsLetters("r", args)
	case "cp":
		t.deep = holdsLetters("r", args) || holdsLetters("a", args)
	case "bash", "sh", "dash", "zsh", "ksh":
		if slices.ContainsFunc(args, func(w word) bool { return isCluster(w.text) && strings.Contains(w.text, "c") }) {
			return
		}
		operands = operands[:min(1, len(operands))]
	case "sed", "gsed":
		if slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "-i") || strings.HasPrefix(w.text, "--in-place") }) {
			t.all = []Kind{KindRead, KindWrite}
		}
		a.editorFiles(args, sc)
	case "awk", "gawk", "mawk", "nawk":
		a.awkFiles(args, sc)
	}
	if t.last == nil {
		for i := min(t.skip, len(operands)); i < len(operands); i++ {
			a.touch(t.all, operands[i], t.deep, sc)
		}
		return
	}
	if folder == nil && len(operands) > 1 {
		folder, operands = operands[len(operands)-1], operands[:len(operands)-1]
	}
	for i := range operands {
		a.touch(t.all, operands[i], t.deep, sc)
		if name == "ln" && folder != nil && folder.literal && operands[i].literal {
			// What a symbolic link names is relative to the link's folder.
			target := literal(join(path.Dir(folder.text), operands[i].text))
			a.touch(t.all, &target, false, sc)
		}
		if folder != nil && folder.literal && operands[i].literal {
			inside := literal(path.Join(folder.text, path.Base(operands[i].text)))
			a.touch(t.last, &inside, false, sc)
		}
	}
	if folder != nil {
		a.touch(t.last, folder, false, sc)
	}
}

// operands returns the words that are no options, and the folder that
// --target-directory names.
func (t *touching) operands(args []word) (operands []*word, folder *word) {
	operands = make([]*word, 0, len(args))
	for i := 0; i < len(args); i++ {
		w := &args[i]
		value, long := strings.CutPrefix(w.text, "--target-directory=")
		short, joined := strings.CutPrefix(w.text, "-t")
		switch {
		case !w.literal || !strings.HasPrefix(w.text, "-") || w.text == "-":
			operands = append(operands, w)
		case w.text == "--":
			for i++; i < len(args); i++ {
				operands = append(operands, &args[i])
			}
		case t.last == nil:
		case (w.text == "-t" || w.text == "--target-directory") && i+1 < len(args):
			i++
			folder = &args[i]
		case long:
			named := literal(value)
			folder = &named
		case joined && short != "":
			named := literal(short)
			folder = &named
		}
	}
	return operands, folder
}

// output returns the file that the option at args[i] names, or nil.
func (t *touching) output(args []word, i int) *word {
	if !args[i].literal {
		return nil
	}
	for _, o := range t.out {
		text := args[i].text
		value, joined := strings.CutPrefix(text, o+"=")
		switch {
		case text == o && i+1 < len(args):
			return &args[i+1]
		case joined:
		case len(o) == 2 && strings.HasPrefix(text, o):
			value = text[2:]
		default:
			continue
		}
		if value != "" {
			named := literal(value)
			return &named
		}
	}
	return nil
}

// touch adds the file or the files that a word names.
func (a *analyser) touch(kinds []Kind, w *word, deep bool, sc *scope) {
	names, exact := w.texts()
	switch {
	case w.literal:
		names = []string{w.text}
	case !exact && !w.open && !w.free && len(w.shapes) > 0:
		a.touchShapes(kinds, w.shapes, deep, sc)
		return
	case !exact:
		names = w.guess
	}
	for _, name := range names {
		if name == "" || len(name) > maxName || harmlessDevice(name) {
			continue
		}
		for _, dir := range sc.dirs {
			for _, kind := range kinds {
				if act := a.p.located(kind, dir, name); a.refused(&act, nil) {
					a.add(unit{action: act, guess: true, derived: true}, sc)
				}
			}
		}
		if deep {
			a.touchShapes(kinds, []string{escapeWord(name)}, true, sc)
		}
	}
}

// touchShapes adds the files that file name patterns find.
func (a *analyser) touchShapes(kinds []Kind, shapes []string, deep bool, sc *scope) {
	f := possiblePath{deep: deep, why: "what it finds depends on the folder"}
	for _, shape := range shapes {
		for _, dir := range sc.dirs {
			if shape != "" {
				f.shapes = append(f.shapes, join(escapeWord(dir), shape))
			}
		}
	}
	if len(f.shapes) == 0 {
		return
	}
	for _, kind := range kinds {
		if act := (Action{Kind: kind, Path: shapes[0]}); a.refused(&act, &f) {
			a.add(unit{action: act, maybe: &f, guess: true}, sc)
		}
	}
}

// diskDump adds the files of dd.
func (a *analyser) diskDump(args []word, sc *scope) {
	for _, w := range args {
		for prefix, kinds := range map[string][]Kind{"of=": kindsWrite, "if=": kindsRead} {
			if name, ok := strings.CutPrefix(w.text, prefix); ok && w.literal {
				named := literal(name)
				a.touch(kinds, &named, false, sc)
			}
		}
	}
}

// found adds the files that find writes, and those below its folders if it
// deletes them.
func (a *analyser) found(args []word, sc *scope) {
	deletes, filtered := false, false
	var kinds []Kind
	folders := 0
	for i := range args {
		w := &args[i]
		switch w.text {
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if i+1 < len(args) {
				a.touch(kindsWrite, &args[i+1], false, sc)
			}
		case "-delete":
			deletes, kinds = true, append(kinds, KindDelete)
		case "-exec", "-execdir", "-ok", "-okdir":
			if i+1 < len(args) {
				kinds = append(kinds, touchingPrograms[path.Base(args[i+1].text)].all...)
			}
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-mtime", "-mmin", "-maxdepth":
			filtered = true
		}
		if i == folders && !strings.HasPrefix(w.text, "-") && w.text != "(" && w.text != "!" {
			folders++
		}
	}
	for i := range folders {
		a.touch(kinds, &args[i], deletes && !filtered, sc)
	}
	if folders == 0 && deletes && !filtered {
		here := literal(".")
		a.touch(kindsDelete, &here, true, sc)
	}
}

// editorFiles adds the files that the programs of sed write and read.
func (a *analyser) editorFiles(args []word, sc *scope) {
	for i := range args {
		program, ok := readSed(args[i].text)
		if !ok || !args[i].literal {
			continue
		}
		for _, name := range program.writes {
			named := literal(name)
			a.touch(kindsWrite, &named, false, sc)
		}
		for _, name := range program.reads {
			named := literal(name)
			a.touch(kindsRead, &named, false, sc)
		}
	}
}

// awkFiles adds the files that programs of awk write and read by a name that
// is spelled out.
func (a *analyser) awkFiles(args []word, sc *scope) {
	for _, w := range args {
		if !w.literal {
			continue
		}
		rest := w.text
		for range maxCarried {
			at := strings.IndexAny(rest, "<>")
			if at < 0 {
				break
			}
			kinds := kindsWrite
			if rest[at] == '<' {
				kinds = kindsRead
			}
			rest = strings.TrimLeft(rest[at:], "<> \t")
			if name, ok := strings.CutPrefix(rest, `"`); ok {
				name, _, _ = strings.Cut(name, `"`)
				named := literal(name)
				a.touch(kinds, &named, false, sc)
			}
		}
	}
}
