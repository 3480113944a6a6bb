package search

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

const (
	// maxNeedles bounds the texts of which each match contains one.
	maxNeedles = 8
	// maxClass bounds the members of a class that is taken as alternatives.
	maxClass = 4
)

// needle is a text that a match contains.
type needle struct {
	text string
	// fold says that its ASCII letters, in lower case, stand for both cases.
	fold bool
}

// needles returns texts of which every match of a pattern contains at least
// one, or nil if none are known.
func needles(re *syntax.Regexp) []needle {
	return extract(re).wanted()
}

// knowledge is what is known of the texts that a pattern matches.
type knowledge struct {
	// exact are all of them; nil if they are not known or too many.
	exact []needle
	// inside are texts of which each match contains one, nil if unknown.
	inside []needle
}

func (k knowledge) wanted() []needle { return better(k.exact, k.inside) }

func extract(re *syntax.Regexp) knowledge {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return knowledge{exact: []needle{{}}}
	case syntax.OpLiteral:
		return literalParts(re)
	case syntax.OpCharClass:
		return classMembers(re)
	case syntax.OpCapture:
		return extract(re.Sub[0])
	case syntax.OpPlus:
		return knowledge{inside: extract(re.Sub[0]).wanted()}
	case syntax.OpRepeat:
		if re.Min == 0 {
			return knowledge{}
		}
		return knowledge{inside: extract(re.Sub[0]).wanted()}
	case syntax.OpConcat:
		return concatenate(re.Sub)
	case syntax.OpAlternate:
		return alternate(re.Sub)
	}
	return knowledge{}
}

// literalParts handles a literal. Without case, only ASCII letters that fold
// to ASCII letters alone can be compared bytewise: k and s have a third form.
// The replacement character also matches bytes that are not UTF-8.
func literalParts(re *syntax.Regexp) knowledge {
	if slices.Contains(re.Rune, unicode.ReplacementChar) {
		return knowledge{}
	}
	if re.Flags&syntax.FoldCase == 0 {
		return knowledge{exact: []needle{{text: string(re.Rune)}}}
	}
	var best, part string
	for _, r := range re.Rune {
		switch {
		case unicode.SimpleFold(r) == r:
			part += string(r)
		case r < unicode.MaxASCII && unicode.SimpleFold(unicode.SimpleFold(r)) == r:
			part += string(lowerByte(byte(r)))
		default:
			part = ""
			continue
		}
		if len(part) > len(best) {
			best = part
		}
	}
	found := []needle{{text: best, fold: true}}
	if len(best) == len(string(re.Rune)) {
		return knowledge{exact: found}
	}
	return knowledge{inside: found}
}

// classMembers takes a small class as alternatives.
func classMembers(re *syntax.Regexp) knowledge {
	var out []needle
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if r == unicode.ReplacementChar || len(out) == maxClass {
				return knowledge{}
			}
			out = append(out, needle{text: string(r)})
		}
	}
	return knowledge{exact: out}
}

// concatenate joins the exact texts of neighbours as long as they are few.
func concatenate(subs []*syntax.Regexp) knowledge {
	exact, whole := []needle{{}}, true
	var inside []needle
	for _, sub := range subs {
		k := extract(sub)
		if joined := cross(exact, k.exact); joined != nil {
			exact = joined
			continue
		}
		whole = false
		inside = better(better(inside, exact), k.inside)
		if exact = k.exact; exact == nil {
			exact = []needle{{}}
		}
	}
	if whole {
		return knowledge{exact: exact}
	}
	return knowledge{inside: better(inside, exact)}
}

// cross returns every text of a followed by every text of b, or nil if there
// are too many. Folded parts make the whole folded, which finds more.
func cross(a, b []needle) []needle {
	if b == nil || len(a)*len(b) > maxNeedles {
		return nil
	}
	var out []needle
	for _, x := range a {
		for _, y := range b {
			out = append(out, join(x, y))
		}
	}
	return out
}

func join(x, y needle) needle {
	if x.fold == y.fold {
		return needle{x.text + y.text, x.fold}
	}
	return needle{lower(x.text + y.text), true}
}

// alternate needs something from every branch.
func alternate(subs []*syntax.Regexp) knowledge {
	var exact, inside []needle
	whole, known := true, true
	for _, sub := range subs {
		k := extract(sub)
		whole = whole && k.exact != nil
		exact = append(exact, k.exact...)
		wanted := usable(k.wanted())
		known = known && wanted != nil
		inside = append(inside, wanted...)
	}
	out := knowledge{}
	if whole && len(exact) <= maxNeedles {
		out.exact = exact
	}
	if known && len(inside) <= maxNeedles {
		out.inside = inside
	}
	return out
}

// usable returns list, or nil if it is empty or holds an empty text, which is
// in every line.
func usable(list []needle) []needle {
	for _, n := range list {
		if n.text == "" {
			return nil
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// better returns the list that is likely to be rarer: the one whose shortest
// text is longer.
func better(a, b []needle) []needle {
	a, b = usable(a), usable(b)
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case worth(b) > worth(a):
		return b
	}
	return a
}

func worth(list []needle) int {
	least := 1 << 30
	for _, n := range list {
		least = min(least, len(n.text))
	}
	return least*16 - len(list)
}
