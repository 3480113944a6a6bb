//go:build unix

package proc

import (
	"os"
)

// streams are the standard descriptors of one command and drover's ends of
// them: pipes, or one terminal.
type streams struct {
	// files are the command's, lent to whoever starts it.
	files [3]*os.File
	out   *readers
	feed  *feeder
	term  *terminal
}

func openStreams(s Spec) (*streams, error) {
	st := &streams{out: newReaders(s.Output)}
	if err := st.open(s); err != nil {
		st.closeLent()
		st.close()
		return nil, err
	}
	for _, f := range st.files {
		f.Fd() // makes it blocking, as programs expect; it is so for whoever shares it
	}
	return st, nil
}

func (st *streams) open(s Spec) (err error) {
	if s.TTY {
		if st.term, err = openTerminal(); err != nil {
			return err
		}
		st.out.ends = []*os.File{st.term.master}
		st.files = [3]*os.File{st.term.slave, st.term.slave, st.term.slave}
		return nil
	}
	if st.files[1], err = st.out.add(); err != nil {
		return err
	}
	if st.files[2] = st.files[1]; !s.Merge {
		if st.files[2], err = st.out.add(); err != nil {
			return err
		}
	}
	if s.Input != nil {
		st.files[0], st.feed, err = openInput()
		return err
	}
	st.files[0], err = os.Open(os.DevNull)
	return err
}

// closeLent closes drover's copies of what the command has got. Without it no
// pipe would ever come to its end. A terminal's stays open until hangUp.
func (st *streams) closeLent() {
	if st.term != nil {
		return
	}
	for i, f := range st.files {
		if f != nil && (i == 0 || f != st.files[i-1]) {
			_ = f.Close() // nothing was written through it
		}
	}
}

// close closes drover's ends when nothing was started.
func (st *streams) close() {
	st.hangUp()
	st.feed.close()
	st.out.close()
}

// hangUp closes drover's hold of the terminal's other side. It keeps the
// terminal from ending while the command runs but has closed its own.
func (st *streams) hangUp() {
	if st.term != nil {
		_ = st.term.slave.Close() // nothing was written through it
	}
}
