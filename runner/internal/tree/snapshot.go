package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// maxShown bounds a file that a diff shows, in bytes. Of a larger one a
	// snapshot keeps a hash only.
	maxShown = 16 << 20
	// tick is more than the step of the clock that stamps files. A file that
	// was stamped this short before the snapshot could change later within the
	// same step, so that its mark proves nothing.
	tick = 100 * time.Millisecond
)

// Snapshot is the state of a tree at one time.
type Snapshot struct {
	dir     string
	entries map[string]entry
	// marks holds the mark of each entry's file in dir, by the entry's number.
	marks []mark
	// pack holds the contents of all files one after another. Its file has no
	// name, so that nothing is left of it after a crash.
	pack *os.File
	// borrowed tells that the pack belongs to another snapshot.
	borrowed bool
	size     int64
	// settled is the time up to which marks can be trusted.
	settled time.Time
}

// entry is a plain file or a link.
type entry struct {
	link   bool
	exec   bool
	target string
	size   int64
	// offset is where the content lies in the pack; -1 is not at all, and sum
	// is its hash then.
	offset int64
	sum    [sha256.Size]byte
	// number is the place in Snapshot.marks.
	number int
}

// Take remembers the tree at dir. scratch is a path beside it for a file that
// is not there yet; it has a name for a moment only.
func Take(ctx context.Context, dir, scratch string) (*Snapshot, error) {
	pack, err := os.OpenFile(scratch, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create snapshot: %w", err)
	}
	// Where open files cannot be deleted it goes with the folder it lies in.
	_ = os.Remove(scratch)
	s := &Snapshot{dir: dir, entries: map[string]entry{}, pack: pack}
	err = walk(ctx, dir, func(rel, path string, info fs.FileInfo) error {
		e, ok, err := s.take(path, info)
		if ok {
			s.entries[rel] = e
		}
		return err
	})
	if err != nil {
		_ = pack.Close() // the walk's error is the one that is told
		return nil, fmt.Errorf("take snapshot: %w", err)
	}
	s.settled = time.Now().Add(-tick)
	return s, nil
}

// At is the same state of another tree, made from the first one: it shares what
// s keeps, reads no content, and must not be used after s is closed. It is nil
// if the tree at dir has other files, or files of other kinds, sizes, links or
// executable bits. That files of one size hold the same, the caller must know.
func (s *Snapshot) At(ctx context.Context, dir string) (*Snapshot, error) {
	at := &Snapshot{dir: dir, entries: s.entries, marks: make([]mark, len(s.marks)), pack: s.pack, borrowed: true}
	found, other := 0, false
	err := walk(ctx, dir, func(rel, path string, info fs.FileInfo) error {
		now, ok, err := describe(path, info)
		if err != nil || !ok {
			return err
		}
		e, known := s.entries[rel]
		if !known || e.link != now.link || e.exec != now.exec || e.target != now.target || e.size != now.size {
			other = true
			return fs.SkipAll
		}
		found++
		at.marks[e.number] = markOf(path)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take snapshot: %w", err)
	}
	if other || found != len(s.entries) {
		return nil, nil
	}
	at.settled = time.Now().Add(-tick)
	return at, nil
}

// Close frees what the snapshot keeps of its own.
func (s *Snapshot) Close() error {
	if s.borrowed {
		return nil
	}
	return s.pack.Close()
}

// walk visits everything in dir but folders and what is named .git.
func walk(ctx context.Context, dir string, visit func(rel, path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if errors.Is(err, fs.ErrNotExist) && path != dir {
				return nil
			}
			return err
		case d.Name() == ".git" && path != dir:
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(rel), path, info)
	})
}

// take remembers one file or link; false is something else.
func (s *Snapshot) take(path string, info fs.FileInfo) (entry, bool, error) {
	e, ok, err := describe(path, info)
	if err != nil || !ok {
		return e, ok, err
	}
	e.number = len(s.marks)
	s.marks = append(s.marks, mark{})
	if e.link {
		return e, true, nil
	}
	f, err := openPlain(path)
	if err != nil {
		return e, false, err
	}
	defer f.Close()
	s.marks[e.number] = markOf(path)
	if e.size > maxShown {
		e.offset = -1
		e.sum, err = hash(f)
		return e, true, err
	}
	e.offset = s.size
	e.size, err = io.Copy(s.pack, f)
	s.size += e.size
	if err != nil {
		return e, false, fmt.Errorf("keep file: %w", err)
	}
	return e, true, nil
}

// describe reads what a folder says of a file or link.
func describe(path string, info fs.FileInfo) (entry, bool, error) {
	switch {
	case info.Mode().IsRegular():
		return entry{exec: info.Mode()&0o100 != 0, size: info.Size()}, true, nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return entry{}, false, fmt.Errorf("read link: %w", err)
		}
		return entry{link: true, target: target, size: int64(len(target))}, true, nil
	}
	return entry{}, false, nil
}

func hash(r io.Reader) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return sum, fmt.Errorf("hash file: %w", err)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// content returns what a remembered entry held; false is too much to keep.
func (s *Snapshot) content(e entry) ([]byte, bool, error) {
	if e.link {
		return []byte(e.target), true, nil
	}
	if e.offset < 0 {
		return nil, false, nil
	}
	data := make([]byte, e.size)
	if _, err := s.pack.ReadAt(data, e.offset); err != nil {
		return nil, false, fmt.Errorf("read snapshot: %w", err)
	}
	return data, true, nil
}

// unchanged tells whether the file at path has still the remembered content.
func (s *Snapshot) unchanged(path string, old, now entry) (bool, error) {
	if old.link || now.link {
		return old.link == now.link && old.target == now.target, nil
	}
	if m := markOf(path); m != (mark{}) && m == s.marks[old.number] && time.Unix(m.sec, m.nsec).Before(s.settled) {
		return true, nil
	}
	if old.size != now.size {
		return false, nil
	}
	f, err := openPlain(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if old.offset < 0 {
		sum, err := hash(f)
		return sum == old.sum, err
	}
	return sameBytes(io.NewSectionReader(s.pack, old.offset, old.size), f)
}

func sameBytes(a, b io.Reader) (bool, error) {
	var x, y [32 << 10]byte
	for {
		n, errA := io.ReadFull(a, x[:])
		m, errB := io.ReadFull(b, y[:])
		if !bytes.Equal(x[:n], y[:m]) {
			return false, nil
		}
		endA := errors.Is(errA, io.EOF) || errors.Is(errA, io.ErrUnexpectedEOF)
		endB := errors.Is(errB, io.EOF) || errors.Is(errB, io.ErrUnexpectedEOF)
		switch {
		case endA && endB:
			return true, nil
		case errA != nil && !endA:
			return false, fmt.Errorf("read snapshot: %w", errA)
		case errB != nil && !endB:
			return false, fmt.Errorf("read file: %w", errB)
		}
	}
}

// plain refuses what is no plain file and closes it.
func plain(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a plain file")
	}
	if err != nil {
		_ = f.Close() // the first error is the one that is told
		return nil, fmt.Errorf("read file: %w", err)
	}
	return f, nil
}
