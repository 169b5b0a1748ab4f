package httpretry_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/reason"
)

// waitWanted is one expectation of a retry-after case. Exactly one field is
// set.
type waitWanted struct {
	WaitMS   *float64 `json:"wait_ms"`
	Invalid  bool     `json:"invalid"`
	FailFast bool     `json:"fail_fast"`
	Retry    *bool    `json:"retry"`
}

type waitCase struct {
	ID          string       `json:"id"`
	Status      int          `json:"status"`
	Method      string       `json:"method"`
	Profile     string       `json:"profile"`
	Now         time.Time    `json:"now"`
	Headers     [][2]string  `json:"headers"`
	RemainingMS *float64     `json:"remaining_ms"`
	BackoffMS   *float64     `json:"backoff_ms"`
	ToleranceMS float64      `json:"tolerance_ms"`
	Key         string       `json:"idempotency_key"`
	Expect      waitWanted   `json:"expect"`
	AlsoOK      []waitWanted `json:"also_ok"`
	Basis       string       `json:"basis"`
	Note        string       `json:"note"`
}

type waitFile struct {
	About string     `json:"about"`
	Cases []waitCase `json:"cases"`
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// header builds the response's header. Fields as they came from the wire: names
// in any case, one value a line.
func (c *waitCase) header() http.Header {
	h := http.Header{}
	for _, line := range c.Headers {
		h.Add(line[0], line[1])
	}
	return h
}

// decide classifies the case's response and decides, with room for a wait of
// the given length at most. Where the case names a computed backoff, that is
// what is drawn.
func (c *waitCase) decide(room time.Duration) (forbear.Failure, forbear.Decision, error) {
	policy, err := forbear.Profile(c.Profile)
	if err != nil {
		return forbear.Failure{}, forbear.Decision{}, err
	}
	req, err := http.NewRequest(c.Method, "http://dependency.test/", nil)
	if err != nil {
		return forbear.Failure{}, forbear.Decision{}, err
	}
	resp := &http.Response{StatusCode: c.Status, Header: c.header(), Body: http.NoBody, Request: req}
	policy.Total = unbounded
	draw := func() float64 { return 0 } // only the server's wait remains
	if c.BackoffMS != nil && *c.BackoffMS > 0 {
		policy.Backoff.Base, policy.Backoff.Cap = millis(*c.BackoffMS), millis(*c.BackoffMS)
		draw = func() float64 { return math.Nextafter(1, 0) }
	}
	f := httpretry.ClassifyAt(req, resp, nil, c.Now)
	state := forbear.State{NeedsKey: httpretry.NeedsKey(c.Method), Key: c.Key, Start: c.Now, Deadline: c.Now.Add(room)}
	bare := f
	bare.Hint.Spread = 0
	d := forbear.Decide(&policy, state, bare, c.Now, draw)
	spread := forbear.Decide(&policy, state, f, c.Now, draw)
	if spread.Retry != d.Retry || spread.Wait < d.Wait || spread.Wait > d.Wait+f.Hint.Spread {
		return f, d, fmt.Errorf("with the spread the decision is %+v, without it %+v", spread, d)
	}
	return f, d, nil
}

// unbounded is more than any wait that is meant to be kept.
const unbounded = 100 * 365 * 24 * time.Hour

// left returns what is left of the call: what the case says, or else a default.
func (c *waitCase) left(otherwise time.Duration) time.Duration {
	if c.RemainingMS != nil {
		return millis(*c.RemainingMS)
	}
	return otherwise
}

// fails returns what speaks against the expectation, or nil.
func (c *waitCase) fails(want waitWanted) error {
	_, readable := httpretry.ParseRetryAfter(c.header(), c.Now)
	switch {
	case want.WaitMS != nil:
		f, d, err := c.decide(c.left(unbounded))
		if err != nil {
			return err
		}
		low := millis(*want.WaitMS)
		got := d.Wait.Round(time.Microsecond)
		if !d.Retry || got < low || got > low+millis(c.ToleranceMS) {
			return fmt.Errorf("retry %v (%v) after %v, the server asks for %v; want %v", d.Retry, d.Reason, got, f.Hint.Floor, low)
		}
		return nil
	case want.Invalid:
		f, d, err := c.decide(c.left(forbear.Policy{}.WithDefaults().Total))
		if err != nil {
			return err
		}
		if readable || f.Hint.Floor != 0 || !d.Retry {
			return fmt.Errorf("read as %v (%v), want it ignored", f.Hint.Floor, d.Reason)
		}
		return nil
	case want.FailFast:
		_, d, err := c.decide(c.left(forbear.Policy{}.WithDefaults().Total))
		if err != nil {
			return err
		}
		if d.Retry || d.Reason != reason.HintTooLong && d.Reason != reason.Deadline {
			return fmt.Errorf("retry %v after %v (%v), want a failure at once", d.Retry, d.Wait, d.Reason)
		}
		return nil
	default:
		_, d, err := c.decide(c.left(unbounded))
		if err == nil && d.Retry != *want.Retry {
			err = fmt.Errorf("retry %v (%v), want %v", d.Retry, d.Reason, *want.Retry)
		}
		return err
	}
}

// understood refuses expectations that are not exactly one thing.
func (w waitWanted) understood() error {
	n := 0
	for _, set := range []bool{w.WaitMS != nil, w.Invalid, w.FailFast, w.Retry != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%d expectations in one, want one", n)
	}
	return nil
}

// check returns what is wrong with the case: nothing when one of its
// expectations is met.
func (c *waitCase) check() error {
	var first error
	for i, want := range append([]waitWanted{c.Expect}, c.AlsoOK...) {
		if err := want.understood(); err != nil {
			return err
		}
		err := c.fails(want)
		if err == nil {
			return nil
		}
		if i == 0 {
			first = err
		}
	}
	return fmt.Errorf("%w (%s; %s)", first, c.Basis, c.Note)
}

func TestVectorsRetryAfter(t *testing.T) {
	var file waitFile
	vectors.Load(t, "retry-after.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			if err := c.check(); err != nil {
				t.Errorf("%v: %v", c.Headers, err)
			}
		})
	}
}

// TestRetryAfterVectorsFail holds the runner to its word.
func TestRetryAfterVectorsFail(t *testing.T) {
	const good = `{"id":"x","status":429,"method":"GET","profile":"standard","now":"2026-11-20T12:00:00Z",` +
		`"headers":[["Retry-After","10"]],"expect":{"wait_ms":10000}}`
	for _, tc := range []struct{ name, replace, with string }{
		{"good", "", ""},
		{"too long", `10000`, `9999`},
		{"too short", `10000`, `10001`},
		{"terminal", `429`, `404`},
		{"not retried", `"GET"`, `"POST"`},
		{"ignored", `{"wait_ms":10000}`, `{"invalid":true}`},
		{"failed", `{"wait_ms":10000}`, `{"fail_fast":true}`},
		{"stopped", `{"wait_ms":10000}`, `{"retry":false}`},
		{"nothing", `{"wait_ms":10000}`, `{}`},
		{"two things", `{"wait_ms":10000}`, `{"wait_ms":10000,"invalid":true}`},
		{"unknown expectation", `"wait_ms"`, `"sleep_ms"`},
		{"unknown profile", `"standard"`, `"reckless"`},
		{"unknown field", `"status"`, `"surprise":1,"status"`},
	} {
		var c waitCase
		err := vectors.Decode([]byte(strings.Replace(good, tc.replace, tc.with, 1)), &c)
		if err == nil {
			err = c.check()
		}
		if (err == nil) != (tc.name == "good") {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestClassifyReadsTheClock: what the cases above say about a time that is
// given holds for the clock.
func TestClassifyReadsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		req := newRequest(t, http.MethodGet, "http://dependency.test/", "", "")
		resp := &http.Response{StatusCode: 503, Body: http.NoBody, Header: http.Header{
			"Retry-After": {time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)},
		}}
		if got := httpretry.Classify(req, resp, nil).Hint.Floor; got != 20*time.Second {
			t.Errorf("got %v, want 20s", got)
		}
	})
}
