package approver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"drover/output/event"
)

// desk is where answers that come as lines meet the requests that wait for
// them. Lines may come from several clients at once.
type desk struct {
	notice Notice

	mu   sync.Mutex
	open map[string]*waiting
	// known are the requests that were made and are not open any more.
	known map[string]bool
	// early are answers to requests that are in the stream and not here yet:
	// whoever reads the stream may be faster.
	early map[string]Answer
	told  int
	// gone is why no answer can come any more; nil as long as one can.
	gone error
}

// waiting is an open request.
type waiting struct {
	request event.Event
	// line is the request as it is sent, with its newline.
	line   []byte
	answer chan Answer
	failed chan error
}

func newDesk(notice Notice) *desk {
	return &desk{notice: notice, open: map[string]*waiting{}, known: map[string]bool{}, early: map[string]Answer{}}
}

// maxEarly bounds the answers to requests that may never come.
const maxEarly = 64

// errNobody is the error of a request that comes when nobody listens any more.
var errNobody = errors.New("the approver has closed its channel")

// ask opens a request, sends it, and waits for its answer.
func (d *desk) ask(ctx context.Context, e event.Event, send func(*waiting)) (Answer, error) {
	line, err := event.AppendJSON(nil, e)
	if err != nil {
		return Answer{}, fmt.Errorf("encode the request: %w", err)
	}
	w := &waiting{request: e, line: append(line, '\n'), answer: make(chan Answer, 1), failed: make(chan error, 1)}
	id := requestID(e)
	d.mu.Lock()
	if a, ok := d.early[id]; ok && a.answers(e) {
		defer d.mu.Unlock()
		delete(d.early, id)
		d.known[id] = true
		return a, nil
	}
	if d.gone != nil {
		defer d.mu.Unlock()
		return Answer{}, d.gone
	}
	d.open[id] = w
	d.mu.Unlock()
	defer d.leave(id)
	send(w)
	select {
	case a := <-w.answer:
		return a, nil
	case err := <-w.failed:
		return Answer{}, err
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
}

func (d *desk) leave(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, id)
	d.known[id] = true
}

// pending are the open requests, for a client that comes later.
func (d *desk) pending() []*waiting {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*waiting, 0, len(d.open))
	for _, w := range d.open {
		list = append(list, w)
	}
	return list
}

// end fails what is open and everything that comes.
func (d *desk) end(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone != nil {
		return
	}
	d.gone = why
	for _, w := range d.open {
		w.fail(why)
	}
}

// fail ends the wait; of several reasons the first counts.
func (w *waiting) fail(why error) {
	select {
	case w.failed <- why:
	default:
	}
}

// take gives one line to the request that it answers. A line that answers none
// is reported, and ends nothing.
func (d *desk) take(line []byte) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}
	a, err := ParseAnswer(line)
	if err != nil {
		d.report(CodeBrokenAnswer, "a line of the approver was passed over: "+err.Error())
		return
	}
	d.mu.Lock()
	w, known := d.open[a.CorrelationID], d.known[a.CorrelationID]
	if w != nil && a.answers(w.request) {
		delete(d.open, a.CorrelationID)
		d.known[a.CorrelationID] = true
		w.answer <- a
		d.mu.Unlock()
		return
	}
	if w == nil && !known && len(d.early) < maxEarly {
		d.early[a.CorrelationID] = a
	}
	d.mu.Unlock()
	id := cut(a.CorrelationID, 80)
	switch {
	case w != nil:
		d.report(CodeBrokenAnswer, fmt.Sprintf("an answer to %q was passed over: its type is not that of the request", id))
	case known:
		d.report(CodeUnknownAnswer, fmt.Sprintf("an answer to %q was passed over: it came too late or twice", id))
	default:
		d.report(CodeUnknownAnswer, fmt.Sprintf("an answer to %q was passed over: there is no such request", id))
	}
}

// answers tells whether an answer has the type that the request asks for.
func (a Answer) answers(request event.Event) bool {
	_, question := request.Body.(event.InputRequestedEvent)
	return question == a.question
}

func (d *desk) report(code, text string) {
	d.mu.Lock()
	d.told++
	n := d.told
	d.mu.Unlock()
	switch {
	case n < maxNotices:
		d.notice(code, text)
	case n == maxNotices:
		d.notice(code, text+" (more of these are not told)")
	}
}

// read takes the lines of one source until its end, and returns why it ended.
// A line that is too long is skipped as a whole.
func (d *desk) read(r io.Reader) error {
	src := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	skipping := false
	for {
		part, err := src.ReadSlice('\n')
		if !skipping {
			line = append(line, part...)
		}
		if len(line) > maxAnswer+2 { // its line end does not count
			d.report(CodeBrokenAnswer, "a line of the approver was passed over: "+errTooLong.Error())
			line, skipping = line[:0], true
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if !skipping {
			d.take(line)
		}
		line, skipping = line[:0], false
		if err != nil {
			return err
		}
	}
}
