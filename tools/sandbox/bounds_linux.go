package sandbox

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// boundsOf returns what a setup forbids.
func boundsOf(o Options, s *setup) bounds {
	b := bounds{
		on: true, mode: o.Mode, network: s.network, denies: readOnly,
		writable: s.of(writable, lifted, layered, temporaryLayer, empty), protected: s.of(protected),
		masked: s.of(masked), free: s.of(lifted), could: couldWrite,
	}
	for _, path := range o.Protected {
		if named := filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path)); !belowAny(b.free, named) && exists(named) {
			b.protected = append(b.protected, named)
		}
	}
	return b
}

// couldWrite tells whether drover itself could write a path, or make it.
func couldWrite(path string) bool {
	for !exists(path) && path != "/" {
		path = filepath.Dir(path)
	}
	return unix.Access(path, unix.W_OK) == nil
}
