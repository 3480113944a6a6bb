package tools

import (
	"sync"

	"drover/tools/internal/proc"
)

// capture keeps the output of a command in bounded memory.
type capture interface {
	take(s proc.Stream, b []byte)
	// drain returns the output since the last drain: omitted bytes lie between
	// head and tail, and total counts all of them. Unless this is the end, a
	// character or an escape sequence that has only begun is left for the next
	// time.
	drain(end bool) (head, tail []byte, total, omitted int64)
}

// merged keeps head and tail of both streams in order of writing. It is safe
// for concurrent use, and takes no memory while a command says nothing.
type merged struct {
	mu  sync.Mutex
	buf proc.Buffer
}

func (m *merged) take(_ proc.Stream, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.buf.Write(b) // cannot fail
}

func (m *merged) drain(end bool) (head, tail []byte, total, omitted int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head, tail = m.buf.Parts()
	total, omitted = m.buf.Total(), m.buf.Omitted()
	m.buf = proc.Buffer{}
	if end {
		return head, tail, total, omitted
	}
	last := &tail
	if len(tail) == 0 {
		last = &head
	}
	keep := unfinished(*last)
	whole, rest := (*last)[:len(*last)-keep], (*last)[len(*last)-keep:]
	_, _ = m.buf.Write(rest) // as above
	*last = whole
	return head, tail, total - int64(keep), omitted
}

// maxEscape bounds how long a sequence is awaited that has only begun.
const maxEscape = 64

// unfinished is the length of a character or of an escape sequence that has
// begun at the end of b.
func unfinished(b []byte) int {
	for n := 1; n <= min(len(b), maxEscape); n++ {
		if at := b[len(b)-n:]; at[0] == 0x1b {
			if escapeLength(at) == 0 {
				return n
			}
			break
		}
	}
	return partial(b)
}

// splitCap bounds each stream of split, and both together.
const splitCap = 1 << 20

// split keeps the first bytes of each stream. stderr comes after stdout. It is
// drained once, at the end.
type split struct {
	first [2][]byte
	total int64
}

func (p *split) take(s proc.Stream, b []byte) {
	p.total += int64(len(b))
	p.first[s] = append(p.first[s], b[:min(len(b), splitCap-len(p.first[s]))]...)
}

// drain joins the streams. Of too much output stdout gets a third, stderr the
// rest, and stdout what stderr does not need.
func (p *split) drain(bool) (head, tail []byte, total, omitted int64) {
	stdout, stderr := p.first[proc.Stdout], p.first[proc.Stderr]
	if len(stdout)+len(stderr) > splitCap {
		third := min(len(stdout), splitCap/3)
		stderr = stderr[:min(len(stderr), splitCap-third)]
		stdout = stdout[:min(len(stdout), splitCap-len(stderr))]
	}
	omitted = p.total - int64(len(stdout)) - int64(len(stderr))
	if omitted == 0 {
		return append(stdout[:len(stdout):len(stdout)], stderr...), nil, p.total, 0
	}
	return stdout, stderr, p.total, omitted
}

// excerptHalf is how much an excerpt keeps of each end.
const excerptHalf = 8 << 10

// excerpt keeps the ends of a whole output, of which the model may have seen
// some already. A nil one keeps nothing.
type excerpt struct{ head, tail []byte }

func (e *excerpt) write(b []byte) {
	if e == nil {
		return
	}
	n := min(len(b), excerptHalf-len(e.head))
	e.head = append(e.head, b[:n]...)
	b = b[n:]
	b = b[max(0, len(b)-excerptHalf):]
	if len(e.tail)+len(b) > 2*excerptHalf {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-excerptHalf:]...)
	}
	e.tail = append(e.tail, b...)
}

func (e *excerpt) text() string {
	return string(e.head) + string(e.tail[max(0, len(e.tail)-excerptHalf):])
}
