package sandbox

// Early is a helper that was started before anything was known of the sandbox: it
// starts while drover reads what a run needs, and then waits to be told. One that
// nobody takes ends with Close. Nil is none.
type Early struct {
	// helper may be read once ready is closed; nil is none, or none any more.
	helper *waiting
	ready  chan struct{}
}

// StartEarly starts a helper for Options.Early and does not wait for it. Where it
// cannot be started, whoever opens the sandbox starts one, and tells what is
// wrong.
func StartEarly() *Early {
	e := &Early{ready: make(chan struct{})}
	go func() { // ends when the helper is started; Close waits for that
		defer close(e.ready)
		e.helper = startWaiting()
	}()
	return e
}

// take returns the helper once, and nil from then on.
func (e *Early) take() *waiting {
	if e == nil {
		return nil
	}
	<-e.ready
	h := e.helper
	if h != nil {
		e.helper = nil
	}
	return h
}

// Close ends a helper that nobody has taken.
func (e *Early) Close() {
	if h := e.take(); h != nil {
		h.end()
	}
}
