package sandbox

// Early is a helper that was started before anything was known of the sandbox: it
// starts while drover reads what a run needs, and then waits to be told. One that
// nobody takes ends with Close. The zero value and nil are none.
//
// It is forked before drover goes on: what a process writes while a fork of it
// has not begun its own program has to be copied, which costs more than the wait.
type Early struct{ helper *waiting }

// StartEarly starts a helper for Options.Early. Where that fails it returns nil:
// whoever opens the sandbox starts one, and tells what is wrong.
func StartEarly() *Early {
	h := startWaiting()
	if h == nil {
		return nil
	}
	return &Early{helper: h}
}

// take returns the helper once, and nil from then on.
func (e *Early) take() *waiting {
	if e == nil {
		return nil
	}
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
