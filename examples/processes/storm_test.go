//go:build linux

package processes

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// stormy are commands that are hard to end.
var stormy = []m{
	command(beating),
	session(beating),
	command("trap '' TERM HUP INT PIPE; " + beating),
	command("for i in $(seq 30); do setsid env -i sleep 600.MARK & done; wait"),
	session("set -m; (trap '' HUP TERM; cd /; sleep 600.MARK) & exec bash --norc -i"),
	command("i=0; while [ $i -lt 500 ]; do (setsid env -i sh -c 'cd /; sleep 600.MARK' &); i=$((i + 1)); done"),
	command("yes MARK"),
	command("sleep 0.0MARK"),
}

// TestKillStorm kills drover at random moments: while it starts, while its
// helper starts, in the midst of a fork, while it ends. One round is part of
// every test run; DROVER_STORM asks for more.
func TestKillStorm(t *testing.T) {
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("DROVER_STORM")); err == nil {
		rounds = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	both(t, func(t *testing.T, in mode) {
		random := rand.New(rand.NewPCG(seed, uint64(len(in))))
		for range rounds {
			var all []m
			for range 1 + random.IntN(4) {
				all = append(all, stormy[random.IntN(len(stormy))])
			}
			after := time.Duration(random.ExpFloat64() * float64(150*time.Millisecond))
			if rounds == 1 {
				after = 300 * time.Millisecond // most is under way by then
			}
			d := newTrial(t, in, []m{calls(all...), says("Done.")}).start()
			select {
			case <-time.After(after):
			case <-d.read: // it was faster
			}
			_ = d.cmd.Process.Kill() // it may have ended
			d.killed(t)
			if t.Failed() {
				t.Fatalf("after %v of %v", after, all)
			}
		}
	})
}
