package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// formed takes the shapes of what was read.
func (w *word) formed(r *wordReader) {
	shapes := r.shapes()
	w.shapes = append(w.shapes, shapes...)
	w.free = w.free || r.free || len(shapes) == 0 || len(w.shapes) > maxBraces
	w.repeat = w.repeat || r.glob
	w.open = w.open || r.open
	w.vanishes = w.vanishes || !r.some && slices.Contains(shapes, "")
}

// form adds the shapes that the next part of the word may have.
func (r *wordReader) form(alternatives ...string) {
	if !r.forming || r.loose || r.free {
		return
	}
	if r.forms == nil {
		r.forms = []string{""}
	}
	if len(r.forms)*len(alternatives) > maxBraces {
		alternatives = []string{"*"}
	}
	next := make([]string, 0, len(r.forms)*len(alternatives))
	for _, head := range r.forms {
		if len(head) > maxGlob {
			r.free = true
			return
		}
		for _, tail := range alternatives {
			next = append(next, head+tail)
		}
	}
	r.forms = next
}

// shapes returns the globs that match what the word becomes.
func (r *wordReader) shapes() []string { return r.forms }

// formValue adds a value that is only known when the script runs.
func (r *wordReader) formValue(quoted bool) {
	r.free, r.open = r.free || !quoted, true
	r.form("*")
}

// formParam adds the shapes of a parameter.
func (r *wordReader) formParam(x *syntax.ParamExp, quoted bool) {
	if !r.forming || x.Param == nil {
		r.formValue(quoted)
		return
	}
	switch name := x.Param.Value; {
	case x.Length || name == "#" || name == "?" || name == "$" || name == "!":
		r.form("[0-9]*")
		return
	case x.Excl || x.Index != nil || x.Slice != nil || x.Repl != nil || x.Exp != nil || x.Names != 0:
	default:
		values, ok := r.a.settled(name)
		if dir := r.a.place(name, r.sc); dir != "" && (quoted || !strings.ContainsAny(dir, " \t\n*?[")) {
			r.form(escapeWord(dir))
			return
		}
		if !ok {
			break
		}
		_, ifs := r.a.fixed.values["IFS"]
		shapes := []string{""}
		for _, v := range values {
			if !quoted && (!v.whole || ifs || r.a.fixed.open["IFS"]) {
				r.formValue(false)
				return
			}
			shapes = append(shapes, v.shape)
			r.open = r.open || v.open
		}
		r.form(shapes...)
		return
	}
	r.formValue(quoted && !isList(x))
}

// formLit adds the shape of unquoted text. A set stands for anything up to
// its end: shells know more kinds of sets than the globs of rules.
func (r *wordReader) formLit(s string) {
	if !r.forming {
		return
	}
	var form strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				form.WriteString(escapeWord(s[i : i+1]))
			}
			continue
		case '[':
			if end := strings.LastIndexByte(s, ']'); end > i {
				i = end
			} else if !r.several {
				form.WriteString(`\[`)
				continue
			} else {
				r.form(form.String() + "*")
				r.loose = true
				return
			}
			form.WriteByte('*')
			continue
		}
		form.WriteByte(s[i])
	}
	r.form(form.String())
}
