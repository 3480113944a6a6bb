package output

import (
	"errors"
	"os"
	"sync"

	"drover/output/event"
	"drover/output/frame"
)

// ErrAbandoned is the error of an output that was given up because its reader
// did not read.
var ErrAbandoned = errors.New("nobody reads it")

// Guard makes a sink that writes to f one that can be given up: a write to a
// pipe, a socket or a terminal waits for a reader, and no signal ends that
// wait. See Abandon. The sink of a plain file is returned as it is.
func Guard(sink event.Sink, f *os.File) event.Sink {
	if _, ok := sink.(*frame.Renderer); ok {
		return sink // it does not wait for its terminal when it takes an event
	}
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() {
		return sink
	}
	g := &guard{sink: sink, work: make(chan event.Event), done: make(chan error, 1), gone: make(chan struct{})}
	// This goroutine ends with Close, or never if the sink was given up: it then
	// still waits for the reader.
	go g.serve()
	return g
}

// Abandon returns what gives up a guarded sink: the write in progress and every
// later one then fail with ErrAbandoned. It may be called at any time, and
// again. For any other sink it is nil.
func Abandon(sink event.Sink) func() {
	if r, ok := sink.(*frame.Renderer); ok {
		return func() { r.Abandon(ErrAbandoned) }
	}
	g, ok := sink.(*guard)
	if !ok {
		return nil
	}
	return func() { g.once.Do(func() { close(g.gone) }) }
}

// guard hands each event to a goroutine, so that whoever emits it can turn to
// something else.
type guard struct {
	sink event.Sink
	// work carries events and is closed by Close; each is answered in done.
	work chan event.Event
	done chan error
	// gone is closed once when the sink is given up; lost says that it has been
	// seen.
	gone chan struct{}
	once sync.Once
	lost bool
}

func (g *guard) serve() {
	for e := range g.work {
		g.done <- g.sink.Emit(e)
	}
	g.done <- g.sink.Close()
}

// Emit writes the event, unless the sink is given up before that is done.
func (g *guard) Emit(e event.Event) error {
	if g.abandoned() {
		return ErrAbandoned
	}
	g.work <- e
	return g.wait()
}

// Close closes the sink, unless it was given up: it is still in use then.
func (g *guard) Close() error {
	if g.abandoned() {
		return nil
	}
	close(g.work)
	return g.wait()
}

func (g *guard) abandoned() bool {
	if g.lost {
		return true
	}
	select {
	case <-g.gone:
		g.lost = true
	default:
	}
	return g.lost
}

func (g *guard) wait() error {
	select {
	case err := <-g.done:
		return err
	case <-g.gone:
		g.lost = true
		return ErrAbandoned
	}
}
