package dispatch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

const (
	maxBack = 1024 // outcomes written back at once
	// While one step waits for the disk another prepares its write. More would
	// compete for the same rows, in smaller batches.
	maxWriting = 2
	// An outcome waits this long for company, unless there are enough or others
	// wait behind it: what shares a step shares its cost. No slot waits for it.
	lull   = 10 * time.Millisecond
	enough = 64
	// A claim begins no sooner than this after the one before: messages that come
	// by the hundred in a second are claimed a few at a time, not each by itself.
	claimEvery = 3 * time.Millisecond
)

// loop is the dispatcher's main loop. Each of its steps writes back the outcomes
// that there are and claims due work for the receivers that want some. The loop does
// not wait for its steps: a claim may be under way, and a few that write back,
// while the next outcomes gather.
type loop struct {
	d     *Dispatcher
	timer *time.Timer

	back  []store.WriteBack // to be written back
	since time.Time         // when the first of back came
	open  bool              // more outcomes may come

	next     time.Time // when a claim may begin
	claiming atomic.Bool
	writing  atomic.Int32 // steps that write back
	steps    sync.WaitGroup
}

// run runs the loop. When ctx ends it claims nothing more and, once no claim is
// under way, closes quiet: no worker begins from then on. It returns when the
// last outcome is written.
func (l *loop) run(ctx context.Context, quiet chan struct{}) {
	l.timer, l.open = time.NewTimer(0), true
	defer l.timer.Stop()
	defer l.steps.Wait()
	background := context.WithoutCancel(ctx)
	for l.gather() {
		over := ctx.Err() != nil // asked once: it may end at any moment
		var c claim
		switch {
		case l.claiming.Load():
		case !over && time.Now().Before(l.next):
			c.again = l.next
		case !over:
			c = l.d.wants()
		case quiet != nil:
			close(quiet)
			quiet = nil
		}
		back, ripe := l.take()
		// Side by side: neither waits for the other's commit.
		if len(back) > 0 {
			l.step(background, claim{}, back)
		}
		if len(c.of) > 0 {
			l.step(background, c, nil)
		}
		if len(back) > 0 || len(c.of) > 0 {
			continue
		}
		ended := ctx.Done()
		if over {
			ended = nil
		}
		l.await(ended, earliest(c.again, ripe))
	}
}

// step makes one step beside the loop, and wakes it at the end: what the step
// delayed can go on.
func (l *loop) step(ctx context.Context, c claim, back []store.WriteBack) {
	claims, writes := len(c.of) > 0, len(back) > 0
	if claims {
		l.claiming.Store(true)
		l.next = time.Now().Add(claimEvery)
	}
	if writes {
		l.writing.Add(1)
	}
	l.steps.Go(func() {
		l.d.step(ctx, c, back)
		if claims {
			l.claiming.Store(false)
		}
		if writes {
			l.writing.Add(-1)
		}
		l.d.wake()
	})
}

// gather takes the outcomes that are there. It reports whether there are any, or
// more may come.
func (l *loop) gather() bool {
	for l.open && len(l.back) < maxBack {
		select {
		case o, ok := <-l.d.outcomes:
			l.add(o, ok)
		default:
			return true
		}
	}
	return l.open || len(l.back) > 0
}

// add keeps an outcome that was received; ok is false when the channel is closed.
func (l *loop) add(o store.WriteBack, ok bool) {
	if l.open = ok; !ok {
		return
	}
	if len(l.back) == 0 {
		l.since = time.Now()
	}
	l.back = append(l.back, o)
}

// take returns the outcomes when they are worth a step, and otherwise when they
// will be.
func (l *loop) take() (back []store.WriteBack, ripe time.Time) {
	if len(l.back) == 0 || l.writing.Load() >= maxWriting {
		return nil, time.Time{}
	}
	ripe = l.since.Add(lull)
	if l.open && len(l.back) < enough && time.Now().Before(ripe) && !slices.ContainsFunc(l.back, ordered) {
		return nil, ripe
	}
	back, l.back = l.back, nil
	return back, time.Time{}
}

// ordered reports whether others wait behind an outcome whose key they share.
func ordered(o store.WriteBack) bool { return o.OrderKey != "" }

// await waits for something to do: outcomes that are worth a look, a wake, the
// time again, the end. Most outcomes are worth none: under load they come by the
// thousand, and each look asks the receivers.
func (l *loop) await(ended <-chan struct{}, again time.Time) {
	var late <-chan time.Time
	if !again.IsZero() {
		l.timer.Reset(max(time.Until(again), 0))
		late = l.timer.C
	}
	outcomes := l.d.outcomes
	if !l.open || len(l.back) >= maxBack {
		outcomes = nil
	}
	for {
		select {
		case o, ok := <-outcomes:
			l.add(o, ok)
			if n := len(l.back); !ok || n == 1 || n == enough || n >= maxBack || ordered(o) {
				return
			}
		case <-late:
			return
		case <-l.d.wakes:
			return
		case <-ended:
			return
		}
	}
}
