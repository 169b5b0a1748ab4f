package pace

import (
	"math"
	"time"
)

const (
	firstProbe = 50 * time.Millisecond
	slowest    = 10 * time.Second // between two probes
	longHint   = time.Minute
)

// closing is what a Pacer knows of a dependency that refuses everything: the rest of
// a limit's window, a ban, an overload.
type closing struct {
	run      int           // refusals since the latest success
	runSent  time.Duration // when the first of them was sent
	closed   bool
	again    bool // it has reopened, and no round has ended well since
	closedAt time.Duration
	probeAt  time.Duration
	gap      time.Duration
	until    time.Duration // the end of the longest wait that was asked for
}

// refused counts a refusal, and closes when nothing gets through. A success counts
// against it only when it was sent later: refusals are quicker to come back.
func (p *Pacer) refused(sent, now, hint time.Duration) {
	if p.run == 0 {
		p.runSent = sent
	}
	p.run++
	p.until = max(p.until, now+min(hint, longHint))
	if p.run < enough || p.closed || (p.others > 0 || p.before > 0) && p.run < 2*enough {
		return
	}
	p.gap = firstProbe
	if !p.free() {
		p.gap = min(max(4*p.interval(), firstProbe/5), firstProbe)
		p.settle(now)
	}
	p.closed, p.closedAt, p.probeAt = true, now, now+p.gap
}

// probed notes that a probe goes out, and when the next one may.
func (p *Pacer) probed(now time.Duration) {
	p.gap = min(2*p.gap, max((p.until-now)/2, roundTime), slowest)
	p.probeAt = now + p.gap
}

// reopen ends that when a probe succeeds. After a short while, the rest of a window, the
// rate is what it was, and at the second time what has been accepted; after a long
// one, half of it.
func (p *Pacer) reopen(now time.Duration) {
	p.closed, p.until = false, now
	accepted := p.good.rate(now)
	switch {
	case math.IsInf(p.rate, 1):
		p.search, p.step = true, quick
		p.set(max(accepted, unknown), now)
	case now-p.closedAt > 2*shortest:
		p.search, p.step = true, quick
		p.set(p.rate/2, now)
	case p.again:
		if below*accepted < deep*p.rate {
			p.search, p.step = true, coarse
		}
		p.set(min(p.rate, below*accepted), now)
	}
	p.again, p.next = true, now
	p.test.on = false
	p.begin(now)
	p.line.wake()
}
