package breaker_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// trouble plays attempts to a breaker.
type trouble struct {
	b   *breaker.Breaker
	now time.Time
}

const (
	every = 5 * time.Millisecond
	opens = 65 * every // the 66th of a hundred
)

// newTrouble returns one after a good minute.
func newTrouble() *trouble {
	x := &trouble{b: breaker.New(breaker.Policy{}.WithDefaults(0), nil), now: time.Now()}
	x.play(breaker.Good, time.Minute)
	return x
}

// play plays attempts that end with o, and returns when the breaker opened: -1
// when it did not.
func (x *trouble) play(o breaker.Outcome, lasts time.Duration) time.Duration {
	began, opened := x.now, time.Duration(-1)
	for ; x.now.Sub(began) < lasts; x.now = x.now.Add(every) {
		before := x.b.State()
		if p, ok := x.b.Allow(x.now); ok {
			x.b.Record(p, o, x.now)
		}
		if opened < 0 && before != breaker.Open && x.b.State() == breaker.Open {
			opened = x.now.Sub(began)
		}
	}
	return opened
}

// TestBurstsAreRemembered: a burst opens the breaker like an outage. The next ones
// do not, as long as they are remembered; an outage then takes five seconds.
func TestBurstsAreRemembered(t *testing.T) {
	x := newTrouble()
	burst := func() time.Duration {
		opened := x.play(breaker.Failed, 2*time.Second)
		x.play(breaker.Good, 18*time.Second)
		return opened
	}
	if at := burst(); at != opens {
		t.Errorf("the first burst opened after %v, want %v", at, opens)
	}
	for i := range ringtest.Size(40, 100) { // longer than one is remembered
		if at := burst(); at >= 0 {
			t.Fatalf("burst %d opened after %v", i+2, at)
		}
	}
	if at := x.play(breaker.Failed, time.Minute); at != opens+5*time.Second {
		t.Errorf("the outage opened after %v, want %v", at, opens+5*time.Second)
	}
	x.play(breaker.Good, 11*time.Minute)
	if at := burst(); at != opens {
		t.Errorf("long after: opened after %v, want %v", at, opens)
	}
}

// TestFlapIsRemembered: a dependency that is down for two seconds and up for two
// opens the breaker once. Its first probes come while it is down again, the next
// ones five seconds later while it is up; after that it is used whenever it is up.
func TestFlapIsRemembered(t *testing.T) {
	const half = 2 * time.Second
	for _, warm := range []bool{true, false} {
		x := newTrouble()
		if !warm {
			x = &trouble{b: breaker.New(breaker.Policy{}.WithDefaults(0), nil), now: time.Now()}
		}
		x.play(breaker.Failed, half)
		for range 2 {
			x.play(breaker.Good, half)
			x.play(breaker.Failed, half)
		}
		for i := range 14 { // until the minute since it closed is over
			if x.play(breaker.Good, half); x.b.State() != breaker.Closed {
				t.Fatalf("warm %v: %v after the good half %d", warm, x.b.State(), i+3)
			}
			if at := x.play(breaker.Failed, half); at >= 0 {
				t.Fatalf("warm %v: bad half %d opened after %v", warm, i+4, at)
			}
		}
	}
}

// TestBusyMinuteIsAMinute: what has come since a breaker closed is no busy minute
// before it has lasted for one, however much it is.
func TestBusyMinuteIsAMinute(t *testing.T) {
	x := newTrouble()
	x.play(breaker.Failed, 2*time.Second)
	x.play(breaker.Good, 5*time.Second)
	closed := x.now.Add(-2 * time.Second) // by the probes after 5 s
	for x.b.State() == breaker.Closed && x.now.Sub(closed) < 5*time.Minute {
		x.play(breaker.Failed, 3*time.Second)
		x.play(breaker.Good, time.Second)
	}
	if lasted := x.now.Sub(closed); lasted < time.Minute || lasted > 65*time.Second {
		t.Errorf("three bad seconds of four opened after %v, want a minute", lasted)
	}
}

// TestOutagesTeachNoPatience: a breaker that was right opens at once again, and
// forgets that it was wrong before.
func TestOutagesTeachNoPatience(t *testing.T) {
	x := newTrouble()
	x.play(breaker.Failed, 2*time.Second)
	x.play(breaker.Good, 20*time.Second)
	want := opens + 5*time.Second
	for range 3 {
		if at := x.play(breaker.Failed, 20*time.Second); at != want {
			t.Errorf("opened after %v, want %v", at, want)
		}
		x.play(breaker.Good, 2*time.Minute)
		want = opens
	}
}

// TestPatienceHasAMinute: a rate so little above the threshold that its latest
// hundred are below it now and then is not taken for trouble that passes, again
// and again.
func TestPatienceHasAMinute(t *testing.T) {
	for seed := range ringtest.Size(uint64(5), 20) {
		x, rng := newTrouble(), rand.New(rand.NewPCG(seed, 1))
		x.play(breaker.Failed, 2*time.Second)
		x.play(breaker.Good, time.Minute)
		for began := x.now; x.b.State() == breaker.Closed; {
			o := breaker.Good
			if rng.Float64() < 0.6 {
				o = breaker.Failed
			}
			if x.play(o, every); x.now.Sub(began) > time.Minute {
				t.Fatalf("seed %d: closed after a minute of 60 %% of failures", seed)
			}
		}
	}
}

// TestLimitsTakeLonger: responses of 429 open the breaker only when they last, and
// teach it no patience with other failures.
func TestLimitsTakeLonger(t *testing.T) {
	x := newTrouble()
	for i := range ringtest.Size(150, 1000) {
		x.play(breaker.Good, 600*time.Millisecond)
		if at := x.play(breaker.Limited, 400*time.Millisecond); at >= 0 {
			t.Fatalf("a limit of 60 %% opened in second %d", i)
		}
	}
	if at := x.play(breaker.Failed, time.Second); at < 0 {
		t.Error("after a limit the breaker stays closed in an outage")
	}
	x = newTrouble()
	if at := x.play(breaker.Limited, 10*time.Second); at != opens+5*time.Second {
		t.Errorf("429s alone opened after %v, want %v", at, opens+5*time.Second)
	}
	// Where nothing has succeeded it is no limit, but a closed door.
	x = &trouble{b: breaker.New(breaker.Policy{}.WithDefaults(0), nil), now: time.Now()}
	if at := x.play(breaker.Limited, time.Second); at != 19*every {
		t.Errorf("429s from the start opened after %v, want 20 of them", at)
	}
}
