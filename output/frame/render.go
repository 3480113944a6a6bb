package frame

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"drover/output/event"
)

// Terminal is where frames are drawn.
type Terminal interface {
	// Write takes bytes as they are; it may wait for as long as the terminal
	// takes none.
	io.Writer
	// Size is the present size; a terminal that does not know it says 0×0.
	Size() (Size, error)
	// Foreground tells whether the process may draw: a shell has not put it into
	// the background.
	Foreground() bool
	// Changed is sent to when the size may have changed. It may be nil.
	Changed() <-chan os.Signal
	// Close gives up what tells of changes. The terminal itself stays open.
	Close()
}

const (
	// pause is the shortest time between two paints, tick the one between two
	// that only move clocks.
	pause = 100 * time.Millisecond
	tick  = time.Second
	// still is for how long the size must stay the same before it is drawn for,
	// and longestHold how long that is waited for at most: a terminal that is
	// being dragged tells late how large it is.
	still       = 400 * time.Millisecond
	longestHold = 3 * time.Second
	// maxBacklog is how many lines may wait for a terminal that takes none.
	maxBacklog = 10_000
	// smallest is the size below which there is no region.
	smallestColumns, smallestRows = 20, 4
)

// Renderer draws a run. It is an event.Sink.
type Renderer struct {
	term  Terminal
	clock Clock
	now   func() time.Time

	// out is held while something is written, and is taken before mu.
	out   sync.Mutex
	paint painter

	mu    sync.Mutex
	scene *scene
	// dirty says that something has changed since the last paint.
	dirty bool
	// writing says that the terminal is being written to; backlog estimates the
	// lines that came since the last commit.
	writing bool
	backlog int
	taken   *sync.Cond
	// held counts who keeps the region off the terminal.
	held   int
	closed bool
	// err is why nothing is drawn any more.
	err error

	// painted is when the last paint was. The others are only used with out held:
	// size is what was last painted for, sized when it was first seen to differ,
	// and resized when it last changed.
	painted, sized, resized time.Time
	size                    Size

	// wake asks the loop to look, done ends it. gone is closed when the terminal
	// is given up.
	wake, done, gone chan struct{}
	abandon          sync.Once
	over             sync.WaitGroup
}

// New returns a renderer that draws on t until it is closed.
func New(t Terminal, o Options) *Renderer {
	r := newRenderer(t, o, time.Now)
	r.over.Add(1)
	go r.loop() // ends with Close
	return r
}

func newRenderer(t Terminal, o Options, now func() time.Time) *Renderer {
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	r := &Renderer{term: t, clock: o.Clock, now: now, scene: newScene(o), wake: make(chan struct{}, 1),
		done: make(chan struct{}), gone: make(chan struct{})}
	r.taken = sync.NewCond(&r.mu)
	return r
}

type systemClock struct{}

func (systemClock) Now() time.Time                 { return time.Now() }
func (systemClock) Wait(t time.Time) time.Duration { return time.Until(t) }

// Emit takes an event. It waits only when very much waits for a terminal that
// takes nothing. Once the terminal cannot be written, it returns why.
func (r *Renderer) Emit(e event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.backlog > maxBacklog && (r.writing || r.held > 0) && r.err == nil {
		r.taken.Wait()
	}
	if r.err != nil {
		return r.err
	}
	r.scene.take(e)
	r.backlog += linesOf(e.Body)
	if !r.dirty {
		r.dirty = true
		r.poke()
	}
	return nil
}

// linesOf estimates how many lines an event moves into history in the end.
func linesOf(b event.Body) int {
	switch b := b.(type) {
	case event.MessageDeltaEvent:
		n := 0
		for i := range len(b.Delta) {
			if b.Delta[i] == '\n' {
				n++
			}
		}
		return n
	case event.ToolResultEvent, event.ToolIncompleteEvent, event.NoticeEvent, event.ErrorEvent:
		return 2
	}
	return 0
}

func (r *Renderer) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// loop paints until Close.
func (r *Renderer) loop() {
	defer r.over.Done()
	defer r.recovered()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-r.wake:
		case <-r.term.Changed():
		case <-timer.C:
		}
		timer.Reset(r.step())
	}
}

// recovered makes a panic of ours the error of the format: the run ends with it
// and the terminal is left as it should be.
func (r *Renderer) recovered() {
	if p := recover(); p != nil {
		r.fail(fmt.Errorf("draw frames: drover has a bug: %v", p))
	}
}

// step paints if it is time to, and returns when to look again.
func (r *Renderer) step() time.Duration {
	r.out.Lock()
	defer r.out.Unlock()
	now := r.now()
	if wait := pause - now.Sub(r.painted); wait > 0 && wait <= pause {
		return wait
	}
	r.mu.Lock()
	idle := r.held > 0 || r.err != nil || r.closed
	r.mu.Unlock()
	if idle || !r.term.Foreground() {
		return tick
	}
	if wait := r.settle(now); wait > 0 {
		return wait
	}
	r.draw(now)
	return r.next()
}

// settle compares the size with the one painted for. When it has changed, the
// region is erased and nothing is drawn until the size has been still; then the
// rest of the wait is returned.
func (r *Renderer) settle(now time.Time) time.Duration {
	size := r.measure()
	switch {
	case r.size == (Size{}):
		r.size = size
	case size != r.size:
		if r.sized.IsZero() {
			r.sized = now
		}
		r.size, r.resized = size, now
		r.write(r.paint.erase())
		r.paint.forget()
	}
	if r.sized.IsZero() {
		return 0
	}
	wait := min(still-now.Sub(r.resized), longestHold-now.Sub(r.sized))
	if wait > 0 {
		return min(wait, pause) // the size may change without a signal
	}
	r.sized = time.Time{}
	return 0
}

// measure is the size of the terminal. One that does not know it counts as
// 80×24.
func (r *Renderer) measure() Size {
	size, err := r.term.Size()
	if err != nil || size.Columns <= 0 || size.Rows <= 0 {
		return Size{Columns: 80, Rows: 24}
	}
	return size
}

// draw lays out and writes.
func (r *Renderer) draw(now time.Time) {
	r.mu.Lock()
	r.dirty = false
	commits, rows := r.layout()
	b := r.paint.paint(commits, rows)
	r.mu.Unlock()
	r.painted = now // also if there was nothing to write: looking costs time, too
	r.write(b)
	r.mu.Lock()
	r.backlog = 0
	r.taken.Broadcast()
	r.mu.Unlock()
}

// layout is what is to be seen now. mu is held.
func (r *Renderer) layout() (commits, rows []string) {
	now := r.clock.Now()
	commits = r.scene.commit(now, r.size)
	if r.size.Columns >= smallestColumns && r.size.Rows >= smallestRows {
		rows = r.scene.rows(now, r.size)
	}
	return commits, rows
}

// next is when to look again although nothing happens.
func (r *Renderer) next() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := time.Hour
	if r.scene.live() {
		wait = tick
	}
	if due := r.scene.due(); !due.IsZero() {
		wait = min(wait, max(pause, r.clock.Wait(due)))
	}
	if r.dirty {
		wait = pause
	}
	return wait
}

// write sends bytes to the terminal in one call. out is held.
func (r *Renderer) write(b []byte) {
	if len(b) == 0 {
		return
	}
	r.mu.Lock()
	off := r.err != nil
	r.writing = !off
	r.mu.Unlock()
	if off {
		return
	}
	n, err := r.term.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	r.mu.Lock()
	r.writing = false
	r.mu.Unlock()
	if err != nil {
		r.fail(fmt.Errorf("write frames: %w", err))
	}
}

func (r *Renderer) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
	r.taken.Broadcast()
}

// flush commits what can be and takes the region off the terminal. out is held.
func (r *Renderer) flush() {
	if r.size == (Size{}) {
		r.size = r.measure()
	}
	r.mu.Lock()
	commits := r.scene.commit(r.clock.Now(), r.size)
	b := r.paint.paint(commits, nil)
	r.backlog = 0
	r.mu.Unlock()
	r.write(b)
}

// Close commits everything and leaves the cursor on a fresh line. It returns
// the first error of the terminal. It waits for a terminal that takes nothing,
// until Abandon.
func (r *Renderer) Close() error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	if first {
		close(r.done)
		ended := make(chan struct{})
		go func() { // lives as long as the terminal takes nothing
			defer close(ended)
			defer r.recovered()
			r.finish()
		}()
		select {
		case <-ended:
		case <-r.gone:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Renderer) finish() {
	r.over.Wait()
	r.term.Close()
	r.out.Lock()
	defer r.out.Unlock()
	r.mu.Lock()
	r.scene.end()
	held := r.held > 0
	r.mu.Unlock()
	if held {
		r.write([]byte(nextLine)) // the row that the cursor is in is not ours
	}
	r.flush()
}

// Abandon gives the terminal up: nobody waits for it any longer, and why is the
// error of everything that follows. It may be called at any time, and again.
func (r *Renderer) Abandon(why error) {
	r.abandon.Do(func() {
		close(r.gone)
		r.fail(why)
	})
}

// Hold takes the region off the terminal until release is called. w prints
// ordinary lines meanwhile, which stay.
func (r *Renderer) Hold() (w io.Writer, release func()) {
	r.Suspend()
	var once sync.Once
	return r.term, func() { once.Do(r.Resume) }
}

// Suspend takes the region off the terminal until Resume.
func (r *Renderer) Suspend() {
	r.out.Lock()
	defer r.out.Unlock()
	r.mu.Lock()
	r.held++
	first := r.held == 1 && !r.closed
	r.mu.Unlock()
	if first && r.term.Foreground() {
		r.flush()
	}
}

// Resume ends a Suspend.
func (r *Renderer) Resume() {
	r.out.Lock()
	defer r.out.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held--; r.held == 0 {
		r.paint.forget()
		r.dirty = true
		r.poke()
	}
	r.taken.Broadcast()
}

// Write prints ordinary lines above the region. They must be clean and end with
// a line end.
func (r *Renderer) Write(p []byte) (int, error) {
	r.out.Lock()
	defer r.out.Unlock()
	r.write(r.paint.erase())
	n, err := r.term.Write(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty = true
	r.poke()
	return n, err
}
