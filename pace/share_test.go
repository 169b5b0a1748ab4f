package pace_test

import (
	"testing"

	"github.com/forbear-go/forbear/pace"
)

// play takes every turn that comes between two milliseconds. accepted says how the
// send with a number ends, which takes no time.
func play(p *pace.Pacer, from, to int, accepted func(at, n int) bool) {
	n := 0
	for at := from; at < to; at++ {
		w, _, ok := turn(p, ms(at))
		switch {
		case w != nil:
			w.Leave()
		case !ok:
		case accepted(at, n):
			n++
			p.Passed(ms(at), ms(at))
		default:
			n++
			p.Throttled(ms(at), ms(at), 0)
		}
	}
}

// bucket accepts so many a second, one at a time.
func bucket(rate float64) func(at, n int) bool {
	level, last := 1.0, 0
	return func(at, _ int) bool {
		level, last = min(level+float64(at-last)/1000*rate, 1), at
		if level < 1 {
			return false
		}
		level--
		return true
	}
}

// Who is refused now and then has reached the limit, and gives way to others that it
// may have.
func TestAFewRefusalsLowerTheRate(t *testing.T) {
	p := learned(t)
	play(p, 200, 10_000, bucket(200))
	before := p.Reading().Rate
	play(p, 10_000, 12_000, func(_, n int) bool { return n%50 != 10 })
	if after := p.Reading().Rate; after > 0.99*before || after < 0.9*before {
		t.Errorf("the rate went from %.1f to %.1f at 2 %% of refusals, want a little less", before, after)
	}
}

// A rate of a few a second is put to the test every few seconds too: it may be a small
// part of a limit that others use less of by now.
func TestASmallRateGrowsWithinSeconds(t *testing.T) {
	p := &pace.Pacer{}
	p.Throttled(ms(0), ms(0), 0)
	few := bucket(5)
	for at := 0; at < 2000 && p.Reading().Rate == 0; at += 50 {
		if few(at, 0) {
			p.Passed(ms(at), ms(at))
		} else {
			p.Throttled(ms(at), ms(at), 0)
		}
	}
	play(p, 2000, 20_000, few)
	before := p.Reading().Rate
	play(p, 20_000, 25_000, func(int, int) bool { return true })
	if after := p.Reading().Rate; before > 6 || after < 1.1*before {
		t.Errorf("the rate went from %.1f to %.1f in five seconds without a refusal, want it to grow", before, after)
	}
}
