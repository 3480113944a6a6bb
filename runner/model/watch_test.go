package model

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// timed is a provider that sends deltas at given pauses and then waits.
type timed struct {
	deltas []timedDelta
	// end, if set, is the error at the end; silent waits for ctx instead.
	end    error
	silent bool
}

type timedDelta struct {
	after time.Duration
	Delta
}

func (p *timed) Name() string { return "timed" }

func (p *timed) Stream(ctx context.Context, _ *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for _, d := range p.deltas {
			select {
			case <-ctx.Done():
				yield(Delta{}, &Error{Kind: ErrCut, Err: ctx.Err(), Retryable: true})
				return
			case <-time.After(d.after):
			}
			if !yield(d.Delta, nil) {
				return
			}
		}
		if p.silent {
			<-ctx.Done()
			yield(Delta{}, &Error{Kind: ErrCut, Err: ctx.Err(), Retryable: true})
		}
		if p.end != nil {
			yield(Delta{}, p.end)
		}
	}
}

var (
	testClocks = Clocks{FirstByte: 120 * time.Second, Idle: 50 * time.Second}
	textDelta  = Delta{Kind: TextDelta, Text: "a"}
	endDelta   = Delta{Kind: Finish, Reason: Stop}
)

func TestClocksEndSilentStreams(t *testing.T) {
	s := time.Second
	pings := func(n int) (d []timedDelta) {
		for range n {
			d = append(d, timedDelta{s, Delta{Kind: TextDelta}})
		}
		return d
	}
	for _, c := range []struct {
		name   string
		clocks Clocks
		p      *timed
		kind   ErrorKind
		at     time.Duration
		says   string
	}{
		{"never a byte", testClocks, &timed{silent: true}, ErrFirstByte, 120 * s, "2m0s"},
		{"headers and then nothing", testClocks, &timed{deltas: []timedDelta{{100 * s, Delta{Kind: Opened}}}, silent: true}, ErrIdle, 150 * s, "50s"},
		{"content and then nothing", testClocks, &timed{deltas: []timedDelta{{s, Delta{Kind: Opened}}, {49 * s, textDelta}, {49 * s, textDelta}}, silent: true}, ErrIdle, 149 * s, "50s"},
		{"pings without content", testClocks, &timed{deltas: append([]timedDelta{{s, textDelta}}, pings(1000)...), silent: true}, ErrIdle, 51 * s, ""},
		{"pings before content", testClocks, &timed{deltas: pings(1000), silent: true}, ErrFirstByte, 120 * s, ""},
		{"slow but alive", testClocks, &timed{deltas: []timedDelta{{119 * s, Delta{Kind: Opened}}, {49 * s, textDelta}, {49 * s, Delta{Kind: CallStart}}, {49 * s, endDelta}}}, "", 266 * s, ""},
		{"no clocks", Clocks{}, &timed{deltas: []timedDelta{{9999 * s, textDelta}, {9999 * s, endDelta}}}, "", 19998 * s, ""},
		{"only the first clock", Clocks{FirstByte: s}, &timed{deltas: []timedDelta{{0, Delta{Kind: Opened}}, {999 * s, endDelta}}}, "", 999 * s, ""},
		{"only the idle clock", Clocks{Idle: s}, &timed{deltas: []timedDelta{{999 * s, Delta{Kind: Opened}}}, silent: true}, ErrIdle, 1000 * s, ""},
		{"its own error", testClocks, &timed{deltas: []timedDelta{{s, textDelta}}, end: &Error{Kind: ErrRate}}, ErrRate, s, ""},
		{"a foreign error", testClocks, &timed{end: errors.New("odd")}, ErrServer, 0, "odd"},
		{"no end", testClocks, &timed{deltas: []timedDelta{{s, textDelta}}}, ErrCut, s, ""},
		{"more behind the end", testClocks, &timed{deltas: []timedDelta{{s, endDelta}, {s, textDelta}}, silent: true}, "", s, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var err error
				ends := 0
				for d, e := range Watch(t.Context(), c.clocks, c.p, nil) {
					if e != nil || d.Kind == Finish {
						ends++
					}
					err = e
				}
				var e *Error
				if c.kind == "" && err != nil || c.kind != "" && (!errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.says)) {
					t.Errorf("got %+v", err)
				}
				if e != nil && (e.Kind == ErrIdle || e.Kind == ErrFirstByte) && !e.Retryable {
					t.Error("it is not retryable")
				}
				if at := time.Since(began); at != c.at || ends != 1 {
					t.Errorf("%d ends after %v, want %v", ends, at, c.at)
				}
			})
		})
	}
}

func TestClocksStandStillWhileTheCallerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &timed{deltas: []timedDelta{{time.Second, Delta{Kind: Opened}}, {time.Second, textDelta}, {time.Second, textDelta}, {time.Second, endDelta}}}
		for _, err := range Watch(t.Context(), testClocks, p, nil) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestCancelledWatchNamesTheCause(t *testing.T) {
	why := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(why) })
		began := time.Now()
		for _, err := range Watch(ctx, testClocks, &timed{silent: true}, nil) {
			var e *Error
			if !errors.As(err, &e) || e.Kind != ErrCancelled || !errors.Is(err, why) || e.Retryable {
				t.Errorf("got %+v", err)
			}
		}
		if time.Since(began) != 5*time.Second {
			t.Errorf("ended after %v", time.Since(began))
		}
	})
}

func TestWatchLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 100 {
		p := &timed{deltas: []timedDelta{{0, textDelta}, {0, textDelta}, {0, endDelta}}, silent: true}
		for d := range Watch(t.Context(), testClocks, p, nil) {
			if d.Kind == TextDelta {
				break
			}
		}
		for range Watch(t.Context(), testClocks, p, nil) {
		}
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
	// A bubble of synctest does not end while a goroutine in it waits.
	synctest.Test(t, func(t *testing.T) {
		for range Watch(t.Context(), testClocks, &timed{deltas: []timedDelta{{0, textDelta}}, silent: true}, nil) {
			break
		}
	})
}
