package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"drover/output"
	"drover/output/event"
	"drover/output/fault"
)

// renderOptions are the flags of events render.
type renderOptions struct {
	format, show string
	play         bool
	speed        float64
	from         time.Duration
	width        int
	set          func(flag string) bool
}

func newEventsRenderCmd(a *app) *cobra.Command {
	var o renderOptions
	c := &cobra.Command{
		Use:   "render FILE | -",
		Short: "Show a recorded stream as a run would have looked",
		Long:  "Show a recorded stream as a run would have looked. A stream that was cut off is shown\nto its end; what was still running then is shown as incomplete. Lines that cannot be\nread are reported on standard error and left out, with exit code 1.\n\nWith --play the stream is played on the terminal at the pace at which it was recorded.",
		Args:  exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.set = c.Flags().Changed
			if err := a.checkRender(&o); err != nil {
				return err
			}
			return a.renderEvents(c.Context(), args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.format, "format", "lines", "how to show it: "+strings.Join(output.Names(), ", "))
	f.BoolVar(&o.play, "play", false, "play it on the terminal as it went")
	f.Float64Var(&o.speed, "speed", 1, "how many times faster to play it")
	f.DurationVar(&o.from, "from", 0, "where to begin to play, such as 1m30s; what was before is there at once")
	f.StringVar(&o.show, "show", "", "what is shown in addition: agents, reasoning or all")
	f.IntVar(&o.width, "width", 0, "width in cells (default: that of the terminal, or 80)")
	f.StringVar(&a.run.color, "color", "auto", "colour on a terminal: auto, always or never")
	f.BoolVar(&a.run.ascii, "ascii", false, "use no characters outside ASCII for people's formats")
	return c
}

// maxSpeed is beyond what an eye can follow.
const maxSpeed = 1e6

// checkRender refuses flags that cannot be used, alone or together.
func (a *app) checkRender(o *renderOptions) error {
	if err := oneOf("color", a.run.color, []string{"auto", "always", "never"}); err != nil {
		return err
	}
	if err := oneOf("show", o.show, shown); err != nil {
		return err
	}
	refuse := func(flag, why, fix string) error {
		return &fault.Error{Code: "usage", What: "--" + flag + " cannot be used", Why: why, Fix: fix, Exit: fault.Usage}
	}
	switch {
	case o.set("speed") && !o.play:
		return refuse("speed", "nothing is played", "give --play as well")
	case o.set("from") && !o.play:
		return refuse("from", "nothing is played", "give --play as well")
	case o.from < 0:
		return refuse("from", "it is negative", "give a time after the beginning")
	case !(o.speed > 0 && o.speed <= maxSpeed):
		return refuse("speed", "it is not a number above 0", "give a factor such as 10")
	case o.set("width") && (o.width < 20 || o.width > 500):
		return refuse("width", "it is not between 20 and 500", "give the number of cells")
	case o.play && o.set("width"):
		return refuse("width", "a stream is played at the width of the terminal", "leave --width or --play out")
	case o.play && o.set("format") && o.format != "frames":
		return refuse("format", "a stream is played as frames", "leave --format or --play out")
	case o.format == "frames" && !o.play:
		return refuse("format", "frames are for a run that is watched", "give --play, or use lines for what would have stayed")
	}
	if o.play {
		o.format = "frames"
	}
	return nil
}

// shown are the values of --show.
var shown = []string{"", "agents", "reasoning", "all"}

// showAlso sets what --show asks for.
func showAlso(o *output.Options, show string) {
	o.Agents = show == "agents" || show == "all"
	o.Reasoning = show == "reasoning" || show == "all"
}

func (a *app) renderEvents(ctx context.Context, path string, o renderOptions) (err error) {
	f, err := a.openStream(path)
	if err != nil {
		return err
	}
	defer f.Close()
	opts := a.look()
	if o.width > 0 {
		opts.Width = o.width
	}
	showAlso(&opts, o.show)
	c := &copier{r: event.NewReader(f), report: func(problem error) {
		fmt.Fprintf(a.stderr, "%s: %s\n", output.Clean(path), output.Clean(problem.Error()))
	}}
	if o.play {
		player := newPlayer(o.speed, o.from)
		opts.Clock, c.pace = player, player.wait
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
	}
	sink, level, err := output.Open(o.format, a.stdout, opts)
	if err != nil {
		return err
	}
	if o.format == "jsonl" {
		level = event.Full // the stream itself: nothing is left out
	}
	c.sink, c.level = sink, level
	if screen, ok := sink.(output.Screen); ok {
		defer watchStops(screen)()
		c.report = a.reportAbove(screen, c.report, path)
	}
	err = c.copy(ctx)
	if closing := sink.Close(); err == nil && closing != nil {
		err = unwritten(closing)
	}
	switch {
	case err == nil && ctx.Err() != nil:
		return exitWith{fault.Interrupted}
	case err == nil && c.broken:
		return exitWith{fault.Failed}
	}
	return err
}

// reportAbove prints problems through the screen if both would write to the
// same terminal.
func (a *app) reportAbove(screen io.Writer, plain func(error), path string) func(error) {
	if !output.SameTerminal(a.stdout, a.stderr) {
		return plain
	}
	return func(problem error) {
		_, _ = fmt.Fprintf(screen, "%s: %s\n", output.Clean(path), output.Clean(problem.Error()))
	}
}

// copier hands the events of a stream to a format.
type copier struct {
	r     *event.Reader
	sink  event.Sink
	level event.Level
	// pace waits until it is time for an event; nil is at once.
	pace func(ctx context.Context, e event.Event)
	// report tells of a line that cannot be read.
	report func(error)
	// broken says that there was one that was not merely cut off at the end.
	broken bool
}

// copy reads to the end of the stream or of ctx. It reports lines that cannot be
// read and passes over them; a last line that was cut off is reported too, but
// is no fault of the stream.
func (c *copier) copy(ctx context.Context) error {
	for {
		before := c.r.Line()
		e, err := c.r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if c.r.Line() == before {
				return unread(err) // not a line but the reading failed
			}
			c.report(err)
			c.broken = c.broken || !errors.Is(err, event.ErrTorn)
			continue
		}
		if event.LevelOf(e.Body) > c.level {
			continue
		}
		if c.pace != nil {
			c.pace(ctx, e)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := c.sink.Emit(e); err != nil {
			return unwritten(err)
		}
	}
}

// player is the clock of a stream that is played: its time begins with the
// first event and runs faster than the real one.
type player struct {
	speed float64
	from  time.Duration
	mu    sync.Mutex
	// began is when playing did.
	began time.Time
	// first is the time at which playing begins, in the stream.
	first time.Time
}

func newPlayer(speed float64, from time.Duration) *player {
	return &player{speed: speed, from: from, began: time.Now()}
}

// Now is the time in the stream.
func (p *player) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first.IsZero() {
		return p.began
	}
	return p.first.Add(time.Duration(float64(time.Since(p.began)) * p.speed))
}

// Wait is how long it is until then.
func (p *player) Wait(t time.Time) time.Duration {
	return time.Duration(float64(t.Sub(p.Now())) / p.speed)
}

// begin starts the clock, once.
func (p *player) begin(first time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first.IsZero() {
		p.first, p.began = first.Add(p.from), time.Now()
	}
}

// longestPause is how long nothing happens at most: a stream may hold any times.
const longestPause = time.Hour

// wait waits until an event is due.
func (p *player) wait(ctx context.Context, e event.Event) {
	p.begin(e.Time)
	pause := min(p.Wait(e.Time), longestPause)
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
