package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"drover/output/event"
)

const (
	maxArtifactName = 100
	// maxSameName is how many artifacts may ask for one name.
	maxSameName = 10000
	// maxArtifacts bounds what all artifacts of a session hold, in bytes: a run
	// with many commands that flood must not fill the disk.
	maxArtifacts = 2 << 30
)

// errArtifactsFull is the answer to data that would exceed maxArtifacts.
var errArtifactsFull = errors.New("the artifacts of the session are full")

// ArtifactWriter writes one artifact piece by piece. It is for one goroutine.
type ArtifactWriter struct {
	file *os.File
	path string
	hash hash.Hash
	// size is what is in the file, and what of it counts in held.
	size int64
	// held is what all artifacts of the session hold, limit what they may.
	held  *atomic.Int64
	limit int64
	err   error
}

// Artifact stores data beside the log. The file has the given name, cleaned of
// everything that is no plain file name, and a number if the name is taken.
func (s *Session) Artifact(name string, data []byte) (event.Artifact, error) {
	w, err := s.ArtifactWriter(name)
	if err != nil {
		return event.Artifact{}, err
	}
	if _, err := w.Write(data); err != nil {
		w.Abort()
		return event.Artifact{}, err
	}
	return w.Finish()
}

// ArtifactWriter opens an artifact that grows, named as in Artifact. Either
// Finish or Abort must end it.
func (s *Session) ArtifactWriter(name string) (*ArtifactWriter, error) {
	dir, err := s.artifacts()
	if err != nil {
		return nil, fmt.Errorf("create artifact: %w", err)
	}
	stem, ext := splitName(cleanName(name))
	for n := 1; n <= maxSameName; n++ {
		try := stem + ext
		if n > 1 {
			try = fmt.Sprintf("%s-%d%s", stem, n, ext)
		}
		path := filepath.Join(dir, try)
		f, err := createPrivate(path, os.O_WRONLY)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("create artifact: %w", err)
		}
		return &ArtifactWriter{file: f, path: path, hash: sha256.New(), held: &s.held, limit: maxArtifacts}, nil
	}
	return nil, fmt.Errorf("create artifact: over %d are named %s", maxSameName, stem+ext)
}

// artifacts returns the folder for artifacts. For an ephemeral session the
// first call makes it.
func (s *Session) artifacts() (string, error) {
	if !s.ephemeral {
		return filepath.Join(s.dir, artifactsName), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", os.ErrClosed
	}
	if s.dir != "" {
		return s.dir, nil
	}
	dir, err := os.MkdirTemp("", "drover-"+s.id+"-")
	if err != nil {
		return "", err
	}
	if err := privateDir(dir); err != nil {
		return "", err
	}
	s.dir = dir
	return dir, nil
}

// Write appends to the artifact. After an error it appends nothing more.
func (w *ArtifactWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.held.Add(int64(len(p))) > w.limit {
		w.held.Add(-int64(len(p)))
		w.err = fmt.Errorf("write artifact: %w", errArtifactsFull)
		return 0, w.err
	}
	n, err := w.file.Write(p)
	w.held.Add(int64(n - len(p)))
	w.size += int64(n)
	w.hash.Write(p[:n])
	if err != nil {
		w.err = fmt.Errorf("write artifact: %w", err)
	}
	return n, w.err
}

// Finish closes the artifact and describes it. If something went wrong before,
// the file is deleted and the error returned.
func (w *ArtifactWriter) Finish() (event.Artifact, error) {
	if w.err == nil {
		if err := w.file.Close(); err != nil {
			w.err = fmt.Errorf("close artifact: %w", err)
		}
	}
	if w.err != nil {
		w.Abort()
		return event.Artifact{}, w.err
	}
	return event.Artifact{Path: w.path, Bytes: w.size, SHA256: hex.EncodeToString(w.hash.Sum(nil))}, nil
}

// Abort deletes the artifact.
func (w *ArtifactWriter) Abort() {
	// Nothing refers to the file; sessions rm takes it if it cannot be deleted.
	_ = w.file.Close()
	_ = os.Remove(w.path)
	w.held.Add(-w.size)
	w.size = 0
}

// cleanName makes a plain file name of any text: names hold ids that models
// have chosen.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if len(name) > maxArtifactName {
		name = name[:maxArtifactName]
	}
	name = strings.TrimLeft(name, ".-")
	if name == "" {
		return "artifact"
	}
	return name
}

// splitName divides a name before its last dot.
func splitName(name string) (stem, ext string) {
	ext = filepath.Ext(name)
	return strings.TrimSuffix(name, ext), ext
}
