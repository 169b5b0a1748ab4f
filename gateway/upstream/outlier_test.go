package upstream

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/visit"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/testkit/race"
)

// books are the endpoints without their connections, and a clock that the test moves.
type books struct {
	*Upstream
	now time.Time
	get *http.Request
}

func newBooks(n int) *books {
	b := &Upstream{config: Config{Logger: slog.New(slog.DiscardHandler)}}
	for i := range n {
		b.all = append(b.all, &endpoint{address: string(rune('a' + i)), health: newHealth()})
	}
	b.divide()
	return &books{b, time.Now(), httptest.NewRequest(http.MethodGet, "/", nil)}
}

var failed = forbear.Failure{Class: forbear.ClassTransient, Type: "http_503", Err: httpretry.StatusError(503)}

// attempt makes one, which fails as said.
func (b *books) attempt(fails func(e *endpoint) bool) *sent {
	s := b.pick(b.get, nil, b.now)
	f := forbear.Failure{Class: forbear.ClassSuccess}
	if fails(s.endpoint) {
		f = failed
	}
	b.record(s, &f, b.now)
	return s
}

func (b *books) out() int { return len(b.all) - len(b.in) }

// A dependency that fails as a whole, or in part but everywhere alike, keeps all of
// its addresses: the load of one that is left out would be added to the others'.
func TestCommonFailuresLeaveNothingOut(t *testing.T) {
	for _, share := range []float64{0.05, 0.2, 0.3, 0.5, 1} {
		for _, n := range []int{2, 3, 10} {
			rng := rand.New(rand.NewPCG(7, uint64(n)))
			var lost time.Duration
			b := newBooks(n)
			for range 1000 { // it was well before
				b.attempt(func(*endpoint) bool { return false })
			}
			calls := 200_000
			if race.Enabled {
				calls = 50_000
			}
			for range calls {
				b.now = b.now.Add(time.Millisecond)
				b.attempt(func(*endpoint) bool { return rng.Float64() < share })
				lost += time.Duration(b.out()) * time.Millisecond
			}
			if of := float64(lost) / float64(time.Duration(calls)*time.Millisecond) / float64(n); of > 0.05 {
				t.Errorf("%v failures at each of %d: an address was left out %.1f %% of the time", share, n, of*100)
			}
		}
	}
}

// One that has failed from the first call on is no different.
func TestFailureFromTheStart(t *testing.T) {
	b := newBooks(3)
	for range 1000 {
		b.attempt(func(*endpoint) bool { return true })
	}
	if b.out() != 0 {
		t.Errorf("%d of 3 are left out", b.out())
	}
}

// One that fails alone is left out after five failures, for a time that grows, and
// tried once at its end; half of the addresses always take part.
func TestOneIsLeftOut(t *testing.T) {
	b := newBooks(4)
	dead := map[*endpoint]bool{b.all[0]: true}
	fails := func(e *endpoint) bool { return dead[e] }
	for range 40 { // all are known
		b.attempt(func(*endpoint) bool { return false })
	}
	for range 100 {
		b.attempt(fails)
	}
	if h := b.all[0].health; !h.out || h.streak != 5 || b.out() != 1 {
		t.Fatalf("after 100 calls: %+v, %d out", h, b.out())
	}
	var trials, longest int
	for range 600 {
		b.now = b.now.Add(time.Second)
		for range 20 {
			if s := b.attempt(fails); s.endpoint == b.all[0] {
				if trials++; !s.trial {
					t.Fatal("an attempt that is no trial went to an address that is left out")
				}
				longest = max(longest, int(b.all[0].health.until.Sub(b.now)/time.Second))
			}
		}
	}
	// Ten minutes in waits of 15 s on average.
	if trials < 20 || trials > 80 || longest < 15 || longest > 30 {
		t.Errorf("%d trials in ten minutes, the longest wait %d s", trials, longest)
	}
	dead[b.all[1]], dead[b.all[2]] = true, true
	for range 1000 {
		b.attempt(fails)
	}
	if b.out() != 2 {
		t.Errorf("%d of 4 are out with three dead, want half", b.out())
	}
	for _, e := range b.all {
		if !e.health.back.IsZero() {
			t.Errorf("%s came back although it is dead", e.address)
		}
	}
	clear(dead)
	for range 60 {
		b.now = b.now.Add(time.Second)
		b.attempt(fails)
	}
	if b.out() != 0 {
		t.Errorf("%d are out a minute after all recovered", b.out())
	}
}

// A trial is one request, until something is heard of it or it has been forgotten.
func TestOneTrialAtATime(t *testing.T) {
	b := newBooks(2)
	for b.out() == 0 {
		b.attempt(func(e *endpoint) bool { return e == b.all[0] })
	}
	b.now = b.now.Add(outBase)
	post := httptest.NewRequest(http.MethodPost, "/", nil)
	if s := b.pick(post, nil, b.now); s.trial {
		t.Error("a request that cannot be retried tries an address")
	}
	first := b.pick(b.get, nil, b.now)
	if !first.trial {
		t.Fatal("no trial when the time is over")
	}
	for range 30 {
		if s := b.pick(b.get, nil, b.now.Add(trialTime-1)); s.trial {
			t.Fatal("a second trial beside the first")
		}
	}
	if s := b.pick(post, nil, b.now.Add(trialTime)); !s.trial {
		t.Error("no trial although the one before was forgotten")
	}
	// The caller of the trial leaves: the next request tries.
	b.record(first, &forbear.Failure{Class: forbear.ClassCanceled}, b.now)
	again := b.pick(b.get, nil, b.now)
	if !again.trial {
		t.Error("no trial after one that came to nothing")
	}
	b.record(again, &forbear.Failure{Class: forbear.ClassSuccess}, b.now)
	if b.out() != 0 {
		t.Error("a good trial does not bring the address back")
	}
	// What began before it was left out says nothing of now.
	for range 20 {
		b.record(&sent{endpoint: b.all[0], at: b.now.Add(-time.Second)}, &failed, b.now)
	}
	if b.out() != 0 || b.all[0].health.streak != 0 {
		t.Error("old attempts count against an address that is back")
	}
}

// A retry does not try an address.
func TestRetriesTryNothing(t *testing.T) {
	b := newBooks(2)
	for b.out() == 0 {
		b.attempt(func(e *endpoint) bool { return e == b.all[0] })
	}
	b.now = b.now.Add(time.Minute)
	var first, second visit.Visit
	first.Begin(t.Context(), nil)
	first.To(&sent{endpoint: b.all[1]})
	second.Begin(t.Context(), &first)
	if s := b.pick(b.get, &second, b.now); s.trial || s.endpoint != b.all[1] {
		t.Errorf("the retry went to %s, trial %v", s.endpoint.address, s.trial)
	}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		f    forbear.Failure
		want string
	}{
		{forbear.Failure{Class: forbear.ClassSuccess}, "good"},
		{forbear.Failure{Class: forbear.ClassTerminal, Type: "http_404", Err: httpretry.StatusError(404)}, "good"},
		{forbear.Failure{Class: forbear.ClassThrottled, Type: "http_429", Err: httpretry.StatusError(429)}, "good"},
		{forbear.Failure{Class: forbear.ClassUnauthorized, Type: "http_401", Err: httpretry.StatusError(401)}, "good"},
		{failed, "bad"},
		{forbear.Failure{Class: forbear.ClassTransient, Type: "http_500", Err: httpretry.StatusError(500)}, "bad"},
		{forbear.Failure{Class: forbear.ClassTransient, Type: "connection_reset", Err: io.EOF}, "bad"},
		{forbear.Failure{Class: forbear.ClassTimeout, Type: errtype.Timeout, Err: errors.New("late")}, "bad"},
		{forbear.Failure{Class: forbear.ClassCertificate, Unsent: true}, "bad"},
		{forbear.Failure{Class: forbear.ClassDNS, Unsent: true}, "bad"},
		{forbear.Failure{Class: forbear.ClassTerminal, Type: "tls_record", Err: errors.New("no TLS")}, "bad"},
		{forbear.Failure{Class: forbear.ClassTransient, Type: errtype.Resend}, "nothing"},
		{forbear.Failure{Class: forbear.ClassCanceled, Type: errtype.Canceled}, "nothing"},
		{forbear.Failure{Class: forbear.ClassTerminal, Type: errtype.RequestBody, Err: errors.New("the caller's")}, "nothing"},
		{forbear.Failure{Type: errtype.Unknown, Err: errors.New("?")}, "nothing"},
	} {
		got := "good"
		if bad, known := judge(&tt.f); !known {
			got = "nothing"
		} else if bad {
			got = "bad"
		}
		if got != tt.want {
			t.Errorf("%v %s: got %s, want %s", tt.f.Class, tt.f.Type, got, tt.want)
		}
	}
}

// Addresses that go leave no more than half of the others out.
func TestAddressesGo(t *testing.T) {
	b := newBooks(4)
	for range 200 {
		b.attempt(func(e *endpoint) bool { return e == b.all[0] || e == b.all[1] })
	}
	if b.out() != 2 {
		t.Fatalf("%d are out", b.out())
	}
	b.all = slices.Clone(b.all[:2])
	b.divide()
	if b.out() != 1 {
		t.Errorf("%d of the 2 that stay are out, want 1", b.out())
	}
}
