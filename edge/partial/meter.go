package partial

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

// Send sends one attempt. It returns the HTTP status of the dependency's
// response, after the time that it takes, or the error of a context that ended
// before.
type Send func(ctx context.Context) (status int, err error)

// Client makes what is on trial: a call that r governs, whose attempts send with
// send, and which reports whether it succeeded.
type Client func(r *forbear.Retryer, send Send) (call func(ctx context.Context) bool)

// Result counts the calls that began after the warm-up, and their sends. It is plain
// data; the zero value is a run without calls, whose shares are 0.
type Result struct {
	Calls, Succeeded, Sends int
	Refused                 int // calls that were never sent
	Bad                     int // sends whose response was no success

	Openings int // of the breaker
	// Opened is when it opened first, OpenedCall how many calls had a response
	// to their first send by then.
	Opened     time.Duration
	OpenedCall int
	// What came after that.
	CallsOpened, SendsOpened int
}

// Success returns the share of the calls that succeeded, in percent.
func (r Result) Success() float64 { return percent(r.Succeeded, r.Calls) }

// OpenShare returns the share of the calls that were refused, in percent.
func (r Result) OpenShare() float64 { return percent(r.Refused, r.Calls) }

// BadShare returns the share of the sends whose response was no success, in
// percent.
func (r Result) BadShare() float64 { return percent(r.Bad, r.Sends) }

// PerCall returns the sends a call.
func (r Result) PerCall() float64 { return percent(r.Sends, r.Calls) / 100 }

// PerCallOpened returns the sends a call since the breaker opened first.
func (r Result) PerCallOpened() float64 { return percent(r.SendsOpened, r.CallsOpened) / 100 }

// An empty total counts as 1: 0 percent is a better figure in a log than NaN.
func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// calling is one call under way, which belongs to one goroutine. Its luck is the
// same under every policy. It needs no lock of its own, because the attempts of a
// call follow one another.
type calling struct {
	caller int
	luck   *rand.Rand
	counts bool // began after the warm-up
	sends  int
}

// callingKey carries the calling through the client on trial, which knows nothing of
// it.
type callingKey struct{}

// meter stands between the callers, the client and the dependency of one run,
// and counts.
type meter struct {
	start, end time.Time // of what is measured

	mu         sync.Mutex
	dependency func(Sent) Response
	result     Result
	heard      int // calls with a response to their first send
}

// began counts a call before its first attempt. Calls of the warm-up fill the
// windows and are not counted.
func (m *meter) began(c *calling) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.counts = !time.Now().Before(m.start); !c.counts {
		return
	}
	m.result.Calls++
	if m.result.Openings > 0 {
		m.result.CallsOpened++
	}
}

// ended counts the outcome. A call without a send was refused, by the breaker as a
// rule.
func (m *meter) ended(c *calling, good bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.counts && good {
		m.result.Succeeded++
	}
	if c.counts && c.sends == 0 {
		m.result.Refused++
	}
}

// send is a [Send].
func (m *meter) send(ctx context.Context) (int, error) {
	c := ctx.Value(callingKey{}).(*calling)
	r := m.respond(c)
	wait := time.NewTimer(r.After)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	m.responded(c)
	return r.Status, ctx.Err()
}

// respond asks the dependency under the lock: dependencies keep state and need none
// of their own.
func (m *meter) respond(c *calling) Response {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.sends++
	at := time.Since(m.start)
	if at < 0 {
		return good(c.luck)
	}
	r := m.dependency(Sent{At: at, Caller: c.caller, Luck: c.luck})
	if !c.counts {
		return r
	}
	m.result.Sends++
	if m.result.Openings > 0 {
		m.result.SendsOpened++
	}
	if r.Status != http.StatusOK {
		m.result.Bad++
	}
	return r
}

// responded counts first responses alone, since the goals for an opening are in
// calls and not in sends.
func (m *meter) responded(c *calling) {
	if c.sends > 1 || !c.counts {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard++
}

// BreakerMoved is for the callback of [forbear.Observer].
func (m *meter) BreakerMoved(e breaker.Transition) {
	if e.To != breaker.Open || !e.At.Before(m.end) {
		return // the last retries, after all new calls, prove nothing
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.result.Openings++; m.result.Openings == 1 {
		m.result.Opened, m.result.OpenedCall = e.At.Sub(m.start), m.heard
	}
}

func (o *meter) observer() *forbear.Observer {
	return &forbear.Observer{BreakerMoved: o.BreakerMoved}
}
