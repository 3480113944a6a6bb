package policy

import (
	"slices"
	"strings"
)

// Programs with a language of their own are matched by their names only. For
// those in whose language a mark begins a command of a shell, deny and ask
// rules are tried on what follows the mark.

// shellMarks are the marks of programs.
var shellMarks = map[string][]string{
	"ed": bang, "red": bang, "ex": vimMarks, "vi": vimMarks, "vim": vimMarks, "view": vimMarks, "nvim": vimMarks,
	"less": bang, "more": bang, "most": bang, "man": bang, "dc": bang, "ftp": bang, "sftp": bang, "lftp": bang, "mail": {"~!", "!"},
	"gdb": {"!", "shell ", "make ", "system("}, "lldb": {"shell ", "system("}, "sqlite3": {".shell ", ".system ", "|"},
	"psql": {`\!`, "PROGRAM "}, "mysql": {`\!`, "system "}, "mariadb": {`\!`, "system "},
	"expect": {"spawn ", "exec ", "system "}, "tclsh": {"exec "}, "wish": {"exec "},
	"m4": {"syscmd(", "esyscmd("}, "emacs": {"shell-command ", "shell-command-to-string ", "call-process "},
}

var (
	bang     = []string{"!"}
	vimMarks = []string{"!", "system(", "systemlist(", "term "}
)

// foreign tries what a program with a language of its own runs: it reads its
// words and its input.
func (a *analyser) foreign(name string, c *command, sc *scope) {
	marks := shellMarks[name]
	if marks == nil || !a.p.hasRefusals() {
		return
	}
	texts := []string{sc.stdin}
	if c.feed != nil {
		texts = append(texts, c.feed.text)
	}
	for _, w := range c.words[1:] {
		texts = append(texts, guessText([]word{w}))
	}
	tried := 0
	for _, text := range texts {
		for line := range strings.SplitSeq(text, "\n") {
			for _, mark := range marks {
				if _, rest, ok := strings.Cut(line, mark); ok && tried < maxCarried {
					tried++
					a.guessForeign(rest, sc)
				}
			}
		}
	}
}

// guessForeign tries a text as it is, and up to the end of its first quotes.
func (a *analyser) guessForeign(text string, sc *scope) {
	a.guessScript(strings.TrimLeft(text, "! "), sc)
	inner := strings.TrimLeft(text, "(`\"' ")
	if end := strings.IndexAny(inner, "`\"')"); end > 0 && inner != text {
		a.guessScript(inner[:end], sc)
	}
}

// made looks for rules that make does not take from a file of the workspace:
// they are on its input or in an option.
func (a *analyser) made(c *command, sc *scope) {
	for i, w := range c.words[1:] {
		value, option := "", c.words[i].text
		switch {
		case !strings.HasPrefix(w.text, "-"):
			if strings.HasPrefix(option, "-") && !strings.HasPrefix(option, "--") && strings.HasSuffix(option, "f") || option == "--file" || option == "--makefile" {
				value = guessText([]word{w})
			}
		case strings.HasPrefix(w.text, "--eval") || strings.HasPrefix(w.text, "-E"):
			a.addWild("make takes rules from its words", sc)
		case strings.HasPrefix(w.text, "--file=") || strings.HasPrefix(w.text, "--makefile="):
			_, value, _ = strings.Cut(w.text, "=")
		case w.text == "-" && strings.HasSuffix(option, "f"), w.text == "-f-":
			value = "-"
		case strings.HasPrefix(w.text, "-f"):
			value = w.text[2:]
		}
		if value == "-" || strings.HasPrefix(value, "/dev/") || strings.HasPrefix(value, "/proc/") {
			a.addWild("make takes rules from its input", sc)
		}
	}
}

// connected tries the programs at the ends of a connection of socat.
func (a *analyser) connected(c *command, sc *scope) {
	for _, w := range c.words[1:] {
		kind, rest, ok := strings.Cut(guessText([]word{w}), ":")
		if ok && slices.Contains([]string{"EXEC", "SYSTEM", "SHELL"}, strings.ToUpper(kind)) {
			command, _, _ := strings.Cut(rest, ",")
			a.guessScript(command, sc)
		}
	}
}

// awkComputes tells whether a program of awk runs a command that it puts
// together.
func awkComputes(program string) bool {
	if !strings.Contains(program, "system") && !strings.Contains(program, "|") {
		return false
	}
	bare := bareAwk(program)
	for rest := bare; ; {
		_, after, ok := strings.Cut(rest, "system")
		if !ok {
			break
		}
		rest = after
		if args, ok := strings.CutPrefix(strings.TrimLeft(after, " \t"), "("); ok && !strings.HasPrefix(strings.TrimLeft(strings.TrimLeft(args, " \t")+" ", " \t"), `")`) {
			return true
		}
	}
	for at := 0; at < len(bare); at++ {
		if bare[at] != '|' {
			continue
		}
		if strings.HasPrefix(bare[at:], "||") {
			at++
			continue
		}
		left, right := strings.TrimRight(bare[:at], " \t"), strings.TrimLeft(strings.TrimPrefix(bare[at+1:], "&"), " \t")
		switch {
		case strings.HasPrefix(right, "getline"):
			if !strings.HasSuffix(left, `"`) || awkJoins(left[:len(left)-1]) {
				return true
			}
		case !strings.HasPrefix(right, `"`) || strings.IndexByte(`;}`+"\n", (strings.TrimLeft(right[1:], " \t") + ";")[0]) < 0:
			return true
		}
	}
	return false
}

// awkJoins tells whether a string behind the text would be joined to it.
func awkJoins(left string) bool {
	left = strings.TrimRight(left, " \t")
	return left != "" && strings.IndexByte(`;{}(!&|,`+"\n", left[len(left)-1]) < 0 && !strings.HasSuffix(left, "while") && !strings.HasSuffix(left, "if")
}

// bareAwk returns a program of awk with one quote for each string, and with
// neither patterns nor comments.
func bareAwk(program string) string {
	var out strings.Builder
	last := byte('\n')
	for i := 0; i < len(program); i++ {
		switch c := program[i]; {
		case c == '"' || c == '/' && strings.IndexByte("\n(,{;!~&|=}", last) >= 0:
			end := i + 1
			for set := false; end < len(program) && (program[end] != c || set); end++ {
				switch program[end] {
				case '\\':
					end++
				case '[':
					set = c == '/'
				case ']':
					set = false
				}
			}
			if i, last = end, c; c == '"' {
				out.WriteByte('"')
			}
		case c == '#':
			for i+1 < len(program) && program[i+1] != '\n' {
				i++
			}
		default:
			out.WriteByte(c)
			if c != ' ' && c != '\t' {
				last = c
			}
		}
	}
	return out.String()
}
