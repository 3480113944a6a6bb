//go:build unix

package proc

import (
	"context"
	"slices"
	"syscall"
	"time"
)

// killPatience is how long processes are awaited after KILL. On a machine that
// is not starved they go within milliseconds; one that hangs in the kernel takes
// longer than any patience, and nobody can end it.
const killPatience = 5 * time.Second

// supervise sees a command through: it waits for its exit, its timeout or the
// end of ctx, ends whatever is left, and settles the result.
func (p *Process) supervise(ctx context.Context) {
	defer close(p.done)
	var expired <-chan time.Time
	if p.spec.Timeout > 0 {
		t := time.NewTimer(p.spec.Timeout)
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-p.exited:
		p.res.Duration = time.Since(p.started)
		p.linger(ctx, expired)
	case <-expired:
		p.res.TimedOut = true
	case <-ctx.Done():
		p.res.Canceled = true
	}
	p.endKin()
	p.feed.close()
	p.settleOutput()
	p.settleState()
}

// linger gives the output of descendants a moment after the command's exit.
func (p *Process) linger(ctx context.Context, expired <-chan time.Time) {
	select {
	case <-p.out.drained:
		return
	default:
	}
	t := time.NewTimer(p.spec.Linger)
	defer t.Stop()
	select {
	case <-p.out.drained:
	case <-t.C:
	case <-expired:
	case <-ctx.Done():
	}
}

// endKin ends the command, if it still runs, and everything it has started. The
// output is still read meanwhile, so that exit traps can print.
func (p *Process) endKin() {
	running := true
	select {
	case <-p.exited:
		running = false
	default:
	}
	if !running {
		p.letGo()
	}
	// The grace holds although ctx may have ended: that is what it is for.
	left := end(context.Background(), &p.kin, p.spec.Grace)
	p.res.Ended, p.res.Survivors = left.ended, left.survivors
	if running {
		p.res.Ended = max(0, p.res.Ended-1) // the command itself
		p.awaitExit()
	}
	if p.res.Duration == 0 {
		p.res.Duration = time.Since(p.started)
	}
}

// awaitExit waits for the command to be reaped. It is dead by now, unless it
// hangs in the kernel or hides from /proc, as a program of another user can.
func (p *Process) awaitExit() {
	t := time.NewTimer(killPatience)
	defer t.Stop()
	select {
	case <-p.exited:
		return
	case <-t.C:
		_ = syscall.Kill(-p.Pid(), syscall.SIGKILL) // it may be allowed all the same
	}
	t.Reset(killPatience)
	select {
	case <-p.exited:
	case <-t.C:
		p.res.Survivors = max(1, p.res.Survivors)
	}
}

// letGo gives descendants that are just about to exit, such as the end of a
// pipeline, a few milliseconds to do so by themselves.
func (p *Process) letGo() {
	for wait := time.Millisecond; wait <= 4*time.Millisecond && len(p.kin.living()) > 0; wait *= 2 {
		time.Sleep(wait)
	}
}

// settleOutput reads what is left. With all kin gone the end of the pipes is
// there already, unless a process that took off its marks holds one.
func (p *Process) settleOutput() {
	select {
	case <-p.out.drained:
	default:
		t := time.NewTimer(DefaultLinger)
		defer t.Stop()
		select {
		case <-p.out.drained:
		case <-t.C:
			p.out.abandon()
			p.res.Abandoned = p.out.held.Load()
		}
	}
	p.res.Bytes = p.out.bytes.Load()
}

func (p *Process) settleState() {
	p.res.Code = -1
	select {
	case <-p.exited:
	default:
		return
	}
	p.res.Lost = p.lost
	if !p.lost {
		p.res.Code, p.res.Signal = p.status.Code, p.status.Signal
	}
}

// member is one running process of a family.
type member struct {
	pid, parent, group, session int
}

// family is a set of processes that can be looked up again and again.
type family interface {
	// living returns the members that run, without zombies.
	living() []member
}

type ending struct{ ended, survivors int }

// end ends every member: TERM, grace, KILL. The end of ctx skips the grace. TERM
// is sent once, in the beginning: a process that appears later belongs to an
// exit trap and must be left to its work until the grace is over. The time it
// takes is bounded by the grace plus killPatience.
func end(ctx context.Context, f family, grace time.Duration) ending {
	left := f.living()
	if len(left) == 0 {
		return ending{}
	}
	seen := map[int]bool{}
	signalAll(left, syscall.SIGTERM)
	// A stopped process sees TERM only when it goes on.
	signalAll(left, syscall.SIGCONT)
	start, wait := time.Now(), time.Millisecond
	var killed time.Time
	for len(left) > 0 {
		for _, m := range left {
			seen[m.pid] = true
		}
		graceLeft := grace - time.Since(start)
		if killed.IsZero() && (graceLeft <= 0 || ctx.Err() != nil) {
			killed, wait = time.Now(), time.Millisecond
		}
		if !killed.IsZero() {
			signalAll(left, syscall.SIGKILL)
			if time.Since(killed) > killPatience {
				break
			}
			time.Sleep(wait)
		} else {
			time.Sleep(min(wait, graceLeft))
		}
		wait = min(2*wait, 20*time.Millisecond)
		left = f.living()
	}
	return ending{ended: len(seen) - len(left), survivors: len(left)}
}

// signalAll signals whole process groups at once, so that no shell sees its
// child die and goes on to the next command before the signal reaches it too. A
// group never spans sessions, so every group of a member is all ours, unless it
// is in drover's own session.
func signalAll(members []member, sig syscall.Signal) {
	own := ownSession()
	var groups []int
	for _, m := range members {
		if m.session == own || m.group <= 1 {
			_ = syscall.Kill(m.pid, sig) // it may be gone already
			continue
		}
		if !slices.Contains(groups, m.group) {
			groups = append(groups, m.group)
			_ = syscall.Kill(-m.group, sig)
		}
	}
}
