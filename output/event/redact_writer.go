package event

import (
	"io"
	"sync"
)

// Writer returns a writer that masks secrets on their way to w, also those that
// are split over several writes: what may be the beginning of a secret is held
// back until the next write or Close tells. Close does not close w. A nil
// Redactor masks nothing. The writer is safe for concurrent use.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser { return &maskedWriter{redactor: r, w: w} }

type maskedWriter struct {
	redactor *Redactor
	w        io.Writer
	mu       sync.Mutex
	state    maskState
	// masked is what is written, in memory that every write uses again.
	masked []byte
}

// Write returns len(p) although the end of p may only be held back.
func (m *maskedWriter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.redactor == nil {
		return m.w.Write(p)
	}
	if err := m.push(string(p), false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what is held back.
func (m *maskedWriter) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.redactor == nil {
		return nil
	}
	return m.push("", true)
}

func (m *maskedWriter) push(chunk string, final bool) error {
	out, n := m.redactor.masker.push(&m.state, chunk, final)
	m.redactor.count.Add(n)
	if out == "" {
		return nil
	}
	m.masked = append(m.masked[:0], out...)
	_, err := m.w.Write(m.masked)
	return err
}
