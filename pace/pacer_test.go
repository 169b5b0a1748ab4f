package pace_test

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/pace"
)

var start = window.Epoch().Add(time.Hour)

// ms returns a time so many milliseconds after the start.
func ms(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }

// learned returns a pacer that was refused four of five sends at 1000 a second, from
// 0 to 100 ms: its rate is about 200.
func learned(t *testing.T) *pace.Pacer {
	t.Helper()
	p := &pace.Pacer{}
	for i := range 100 {
		if i%5 == 4 {
			p.Passed(ms(i), ms(i))
		} else {
			p.Throttled(ms(i), ms(i), 0)
		}
		if p.Reading().Rate > 0 {
			break
		}
	}
	if r := p.Reading(); !r.Active || r.Rate < 100 || r.Rate > 300 || r.Closed {
		t.Fatalf("reading %+v, want a rate of about 200", r)
	}
	return p
}

// turn asks for a turn that may wait for a second.
func turn(p *pace.Pacer, now time.Time) (*pace.Waiter, time.Time, bool) {
	return p.Turn(now, now, now.Add(time.Second))
}

func TestInactiveUntilTheFirstRefusal(t *testing.T) {
	p := &pace.Pacer{}
	for i := range 100 {
		if w, _, ok := turn(p, ms(i)); w != nil || !ok {
			t.Fatal("a turn had to be waited for, and nothing was ever refused")
		}
		p.Passed(ms(i), ms(i))
	}
	if p.Active() || p.Reading() != (pace.Reading{}) {
		t.Errorf("reading %+v, want none", p.Reading())
	}
}

func TestInactiveAgainAfterAMinute(t *testing.T) {
	p := learned(t)
	if turn(p, ms(59_000)); !p.Active() {
		t.Error("inactive before a minute is over")
	}
	if turn(p, ms(61_000)); p.Active() {
		t.Error("active a minute after the last refusal")
	}
}

func TestTurnsAreSpaced(t *testing.T) {
	p := learned(t)
	apart := time.Duration(float64(time.Second) / p.Reading().Rate)
	if w, _, ok := turn(p, ms(200)); w != nil || !ok {
		t.Fatal("the first turn had to be waited for")
	}
	_, _, _ = turn(p, ms(200)) // one more within what a late timer may catch up on
	w, _, ok := turn(p, ms(200))
	if w == nil || !ok {
		t.Fatal("no waiting, want a turn that comes later")
	}
	wait, taken, _ := w.Ask(ms(200))
	if taken || wait <= 0 || wait > 2*apart {
		t.Fatalf("wait %v, taken %v; want about %v", wait, taken, apart)
	}
	if _, taken, _ = w.Ask(ms(200).Add(wait)); !taken {
		t.Error("no turn after the wait")
	}
	if n := p.Reading().Waiting; n != 0 {
		t.Errorf("%d wait, want none", n)
	}
}

// full fills the first turns and returns n that wait, the oldest first.
func full(t *testing.T, p *pace.Pacer, at time.Time, n int) (line []*pace.Waiter) {
	t.Helper()
	for len(line) < n {
		w, _, ok := turn(p, at)
		if !ok {
			t.Fatal("refused")
		}
		if w != nil {
			line = append(line, w)
		}
	}
	return line
}

// A cancelled wait gives its turn to the next, who is woken.
func TestLeavingPassesTheTurnOn(t *testing.T) {
	p := learned(t)
	line := full(t, p, ms(200), 3)
	if _, taken, _ := line[1].Ask(ms(500)); taken {
		t.Fatal("the second took the turn of the first")
	}
	line[0].Leave()
	select {
	case <-line[1].Moved():
	default:
		t.Error("the second is not woken")
	}
	if _, taken, _ := line[1].Ask(ms(500)); !taken {
		t.Error("the second has no turn after the first has left")
	}
}

// A retry that has waited out its backoff stands where it would if it had waited in line.
func TestTheOldestComesFirst(t *testing.T) {
	p := learned(t)
	line := full(t, p, ms(200), 3)
	retry, _, ok := p.Turn(ms(210), ms(150), ms(1000))
	if !ok || retry == nil {
		t.Fatal("the retry does not wait")
	}
	if _, taken, _ := line[0].Ask(ms(300)); taken {
		t.Error("the younger call came first")
	}
	if _, taken, _ := retry.Ask(ms(300)); !taken {
		t.Error("the retry has no turn")
	}
}

func TestRefusedAtOnceWhenTheTurnComesTooLate(t *testing.T) {
	p := learned(t)
	full(t, p, ms(200), 50)
	w, until, ok := p.Turn(ms(200), ms(200), ms(250))
	if ok || w != nil {
		t.Fatal("let in line for a turn that comes too late")
	}
	if in := until.Sub(ms(200)); in < 100*time.Millisecond || in > 600*time.Millisecond {
		t.Errorf("told to come in %v, want about 250ms", in)
	}
}

// TestAGuessSendsNoOneFarAway: after a first window of refusals the rate is a guess, which
// doubles with each round. Many wait by then, and their number says nothing of when the
// next call may come, neither to a new one nor to one whose time is over.
func TestAGuessSendsNoOneFarAway(t *testing.T) {
	p := &pace.Pacer{MaxWaiting: 400}
	for range 8 {
		p.Throttled(ms(0), ms(0), 0)
	}
	var last *pace.Waiter
	for i := range p.MaxWaiting {
		var ok bool
		if last, _, ok = p.Turn(ms(1), ms(1), ms(700)); !ok || last == nil {
			t.Fatalf("call %d does not wait", i)
		}
	}
	p.Passed(ms(600), ms(601))
	if r := p.Reading(); r.Closed || r.Rate != 20 {
		t.Fatalf("reading %+v, want a guess of 20", r)
	}
	_, until, ok := p.Turn(ms(601), ms(601), ms(30_000))
	if in := until.Sub(ms(601)); ok || in < time.Millisecond || in > 1100*time.Millisecond {
		t.Errorf("a new call: ok %v, told to come in %v; want it refused for a second at most", ok, in)
	}
	_, taken, until := last.Ask(ms(700))
	if in := until.Sub(ms(700)); taken || in > 1100*time.Millisecond {
		t.Errorf("a call that has waited: taken %v, told to come in %v; want it refused for a second at most", taken, in)
	}
}

func TestTheLineIsBounded(t *testing.T) {
	p := learned(t)
	p.MaxWaiting = 10
	full(t, p, ms(200), 10)
	if _, _, ok := turn(p, ms(200)); ok {
		t.Error("an eleventh waits")
	}
}

// One who waits until its time is over is told so, and when to come.
func TestAWaitEndsInTime(t *testing.T) {
	p := learned(t)
	full(t, p, ms(200), 1)
	w, _, ok := p.Turn(ms(200), ms(200), ms(220))
	if !ok || w == nil {
		t.Fatal("the call does not wait")
	}
	wait, taken, until := w.Ask(ms(220))
	if taken || wait > 0 || until.Before(ms(200)) {
		t.Errorf("wait %v, taken %v, until %v; want a refusal", wait, taken, until)
	}
}

func TestATurnGivenBackIsTheNextOnes(t *testing.T) {
	p := learned(t)
	line := full(t, p, ms(200), 1)
	before, _, _ := line[0].Ask(ms(200))
	p.GiveBack()
	if after, taken, _ := line[0].Ask(ms(200)); !taken && after >= before {
		t.Errorf("the turn comes in %v, and came in %v before one was given back", after, before)
	}
}

// A dependency that refuses everything is probed, more and more rarely, and a success
// ends that.
func TestClosedIsProbed(t *testing.T) {
	p := &pace.Pacer{}
	for i := range 8 {
		p.Throttled(ms(i), ms(i), 20*time.Second)
	}
	if !p.Reading().Closed {
		t.Fatal("not closed after eight refusals in a row")
	}
	if _, until, ok := turn(p, ms(10)); ok || until.Before(ms(19_000)) {
		t.Errorf("a call that has a second waits, or is told %v; want it refused until the 20 s are over", until.Sub(start))
	}
	probes := 0
	for i := 10; i < 15_000; i++ {
		if w, _, ok := turn(p, ms(i)); ok && w == nil {
			probes++
			p.Throttled(ms(i), ms(i), 20*time.Second)
		}
	}
	if probes < 3 || probes > 12 {
		t.Errorf("%d probes in 15 s of a wait of 20 s", probes)
	}
	p.Passed(ms(-1), ms(15_000))
	if !p.Reading().Closed {
		t.Error("reopened by a success of before")
	}
	p.Passed(ms(14_999), ms(15_001))
	if p.Reading().Closed {
		t.Error("still closed after a success")
	}
}
