package cmd

import (
	"errors"
	"io"

	"drover/output/event"
	"drover/runner/session"
	"drover/tools"
)

var errNoArtifacts = errors.New("an ephemeral session keeps no files")

// openArtifact opens a file of the session for something large. Secrets are
// masked on the way. An ephemeral session has no place for it.
func (p *prepared) openArtifact(name string) (tools.ArtifactWriter, error) {
	if p.session.IsEphemeral() {
		return nil, errNoArtifacts
	}
	w, err := p.session.ArtifactWriter(name)
	if err != nil {
		return nil, err
	}
	return &maskedArtifact{WriteCloser: p.redact.Writer(w), to: w}, nil
}

// maskedArtifact masks what goes into an artifact.
type maskedArtifact struct {
	io.WriteCloser
	to *session.ArtifactWriter
}

// Finish writes what was held back and closes the file.
func (m *maskedArtifact) Finish() (event.Artifact, error) {
	if err := m.Close(); err != nil {
		m.to.Abort()
		return event.Artifact{}, err
	}
	return m.to.Finish()
}

// Abort deletes the file.
func (m *maskedArtifact) Abort() { m.to.Abort() }
