package policy

import "strings"

// sedProgram is what a program of sed does besides editing.
type sedProgram struct {
	// runs are commands of a shell, writes and reads are files.
	runs, writes, reads []string
	// computed says that it runs what it reads.
	computed bool
}

// sedReader reads a program of sed.
type sedReader struct {
	text string
	at   int
}

// readSed reads a program of sed; ok is false if the text is none.
func readSed(text string) (program sedProgram, ok bool) {
	r := sedReader{text: text}
	for r.at < len(text) {
		r.skip(" \t\n;{}")
		if r.at == len(text) {
			break
		}
		if !r.address() {
			return program, false
		}
		r.skip(" \t!")
		if r.at == len(text) {
			return program, false
		}
		command := text[r.at]
		r.at++
		switch command {
		case '{', '}':
		case '#':
			r.line()
		case 's':
			if !r.substitute(&program) {
				return program, false
			}
		case 'y':
			if _, ok := r.delimited(2); !ok {
				return program, false
			}
		case 'e':
			if line := strings.TrimSpace(r.line()); line != "" {
				program.runs = append(program.runs, line)
			} else {
				program.computed = true
			}
		case 'w', 'W':
			program.writes = append(program.writes, strings.TrimSpace(r.line()))
		case 'r', 'R':
			program.reads = append(program.reads, strings.TrimSpace(r.line()))
		case 'a', 'i', 'c':
			for line := r.line(); strings.HasSuffix(line, `\`) && r.at < len(text); {
				line = r.line()
			}
		case ':', 'b', 't', 'T', 'v':
			r.until("\n;}")
		case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'l', 'L', 'n', 'N', 'p', 'P', 'q', 'Q', 'x', 'z', 'F':
			r.skip(" \t0123456789")
			if r.at < len(text) && strings.IndexByte("\n;}#", text[r.at]) < 0 {
				return program, false
			}
		default:
			return program, false
		}
	}
	return program, true
}

func (r *sedReader) skip(set string) {
	for r.at < len(r.text) && strings.IndexByte(set, r.text[r.at]) >= 0 {
		r.at++
	}
}

func (r *sedReader) until(set string) string {
	from := r.at
	for r.at < len(r.text) && strings.IndexByte(set, r.text[r.at]) < 0 {
		r.at++
	}
	return r.text[from:r.at]
}

func (r *sedReader) line() string { return r.until("\n") }

// address reads up to two addresses.
func (r *sedReader) address() bool {
	for {
		switch c := r.peek(); {
		case c == '/' || c == '\\':
			if c == '\\' {
				r.at++
			}
			if _, ok := r.delimited(1); !ok {
				return false
			}
			r.skip("IM")
		default:
			r.skip("0123456789$~+")
		}
		r.skip(" \t")
		if r.peek() != ',' {
			return true
		}
		r.at++
		r.skip(" \t")
	}
}

func (r *sedReader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

// delimited reads parts of which each ends in the delimiter that stands here.
func (r *sedReader) delimited(parts int) (texts []string, ok bool) {
	end := r.peek()
	if end == 0 || end == '\n' {
		return nil, false
	}
	r.at++
	for range parts {
		from, set := r.at, false
		for ; r.peek() != end || set; r.at++ {
			switch c := r.peek(); {
			case c == 0:
				return nil, false
			case c == '\\':
				r.at++
			case c == '[' && len(texts) == 0 && !set:
				set = strings.IndexByte(r.text[min(r.at+2, len(r.text)):], ']') >= 0 && r.setCloses(end)
			case c == ']' && r.at > from+1 && r.text[r.at-1] != '[' && r.text[r.at-1] != '^':
				set = false
			}
			if r.at >= len(r.text) {
				return nil, false
			}
		}
		texts = append(texts, r.text[from:r.at])
		r.at++
	}
	return texts, true
}

// setCloses tells whether the set that begins here ends before the next line
// although it holds the delimiter.
func (r *sedReader) setCloses(end byte) bool {
	rest := r.text[min(r.at+2, len(r.text)):]
	closing := strings.IndexByte(rest, ']')
	return closing >= 0 && strings.IndexByte(rest[:closing], end) >= 0
}

// substitute reads the command s with its flags.
func (r *sedReader) substitute(program *sedProgram) bool {
	texts, ok := r.delimited(2)
	if !ok {
		return false
	}
	for {
		switch r.peek() {
		case 'g', 'p', 'i', 'I', 'm', 'M', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ' ', '\t':
		case 'e':
			program.computed = true
			program.runs = append(program.runs, texts[1])
		case 'w':
			r.at++
			program.writes = append(program.writes, strings.TrimSpace(r.line()))
			return true
		case 0, '\n', ';', '}', '#':
			return true
		default:
			return false
		}
		r.at++
	}
}
