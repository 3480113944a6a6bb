package proc

// HeadTail is how many bytes a Buffer keeps at each end.
const HeadTail = 512 << 10

// Buffer keeps the first and the last HeadTail bytes of what is written to it
// and counts the rest. Its memory is bounded by twice that and grows only as
// needed. The zero value is ready. It is not safe for concurrent use.
type Buffer struct {
	head []byte
	// tail is a ring once it is full: the oldest byte is at next.
	tail  []byte
	next  int
	total int64
}

// Write appends p. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	n := len(p)
	b.total += int64(n)
	if room := HeadTail - len(b.head); room > 0 {
		take := min(room, len(p))
		b.head = append(b.head, p[:take]...)
		p = p[take:]
	}
	if len(p) == 0 {
		return n, nil
	}
	if len(p) >= HeadTail {
		b.tail = append(b.tail[:0], p[len(p)-HeadTail:]...)
		b.next = 0
		return n, nil
	}
	if b.tail == nil {
		b.tail = make([]byte, 0, HeadTail) // so long an output rarely stops here
	}
	if room := HeadTail - len(b.tail); room > 0 {
		take := min(room, len(p))
		b.tail = append(b.tail, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		c := copy(b.tail[b.next:], p)
		p = p[c:]
		b.next = (b.next + c) % HeadTail
	}
	return n, nil
}

// Total is the number of bytes written.
func (b *Buffer) Total() int64 { return b.total }

// Omitted is the number of bytes between head and tail that were not kept.
func (b *Buffer) Omitted() int64 { return b.total - int64(len(b.head)) - int64(len(b.tail)) }

// Parts returns what was kept: the head, which may be all there is, and the
// tail, which follows after Omitted bytes. The head is valid until the next
// Write.
func (b *Buffer) Parts() (head, tail []byte) {
	if b.next == 0 {
		return b.head, b.tail
	}
	tail = make([]byte, 0, len(b.tail))
	tail = append(tail, b.tail[b.next:]...)
	return b.head, append(tail, b.tail[:b.next]...)
}
