package jobs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateLetsAsManyInAsTheProviderBears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4)
		for range 4 {
			if _, err := g.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		late, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("full"))
		defer cancel()
		if _, err := g.enter(late); err == nil || err.Error() != "full" {
			t.Fatalf("a fifth row came in: %v", err)
		}
		g.complain()
		g.complain() // of the same round
		if g.open() != 2 {
			t.Errorf("after a complaint %d are let in", g.open())
		}
		for range 4 {
			g.leave(false, answered)
		}
		for n := 0; g.open() < 4; n++ {
			if n > 100 {
				t.Fatal("it never gets back to what the user gave")
			}
			probe, err := g.enter(t.Context())
			if err != nil || probe {
				t.Fatal(probe, err)
			}
			g.leave(false, answered)
		}
		for range 10 {
			time.Sleep(cutEvery)
			g.complain()
		}
		if g.open() != 1 {
			t.Errorf("at the least one row is let in, not %d", g.open())
		}
	})
}

func TestProviderThatIsDownIsAskedByOneRowAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(16)
		for i := range downLimit {
			probe, err := g.enter(t.Context())
			if err != nil || probe {
				t.Fatal(probe, err)
			}
			if closed, _ := g.leave(false, failing); closed != (i == downLimit-1) {
				t.Fatalf("after %d failures closed is %v", i+1, closed)
			}
		}
		if g.open() != 0 {
			t.Error("the gate is open")
		}
		began := time.Now()
		probe, err := g.enter(t.Context())
		if err != nil || !probe {
			t.Fatal(probe, err)
		}
		if waited := time.Since(began); waited != firstPause {
			t.Errorf("the first try came after %v", waited)
		}
		second := make(chan bool, 1)
		go func() { p, _ := g.enter(t.Context()); second <- p }()
		synctest.Wait()
		select {
		case <-second:
			t.Fatal("two rows try at once")
		default:
		}
		began = time.Now()
		g.leave(true, failing)
		if probe := <-second; !probe {
			t.Error("the next one is no try")
		}
		if waited := time.Since(began); waited != 2*firstPause {
			t.Errorf("the second pause took %v", waited)
		}
		if _, opened := g.leave(true, answered); !opened {
			t.Error("an answer does not open the gate")
		}
		if g.open() < 1 {
			t.Error("the gate stays closed")
		}
	})
}

func TestRowThatEndsBeforeTheProviderWasAskedSaysNothing(t *testing.T) {
	g := newGate(2)
	for range 3 * downLimit {
		if _, err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.leave(false, unknown)
	}
	if g.open() != 2 {
		t.Error("the gate has learned from nothing")
	}
}
