package payment

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile/check"
)

// processor answers a script, its last line for ever, and notes what it gets.
type processor struct {
	script []answer
	keys   []string
	at     []time.Time
}

type answer struct {
	status     int
	retryAfter string
}

func (p *processor) RoundTrip(req *http.Request) (*http.Response, error) {
	a := p.script[min(len(p.at), len(p.script)-1)]
	p.keys = append(p.keys, req.Header.Get("Idempotency-Key"))
	p.at = append(p.at, time.Now())
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	h := http.Header{}
	if a.retryAfter != "" {
		h.Set("Retry-After", a.retryAfter)
	}
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: http.NoBody, Request: req,
	}, nil
}

// charge makes one payment in a bubble.
func charge(t *testing.T, p *processor, opts ...forbear.Option) (err error) {
	t.Helper()
	c := client(t, p, opts...)
	p.at, p.keys = nil, nil
	return c.Charge(t.Context(), "4242", 1000)
}

// client returns a client whose budget has seen forty good payments: a strict
// budget grants retries for traffic that there was.
func client(t *testing.T, p *processor, opts ...forbear.Option) *Client {
	t.Helper()
	c, err := New("http://processor.test", p, append([]forbear.Option{forbear.WithoutLog()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	script := p.script
	p.script = []answer{{status: 201}}
	for range 40 {
		if err := c.Charge(t.Context(), "4242", 1); err != nil {
			t.Fatal(err)
		}
	}
	p.script = script
	return c
}

// Rubric, line 1: 400 and 402 are not retried; 500, 503 and 429 are.
func TestExcludes400And402(t *testing.T) {
	for _, tt := range []struct{ status, sends int }{{400, 1}, {402, 1}, {500, 4}, {503, 4}, {429, 4}} {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &processor{script: []answer{{status: tt.status}}}
				err := charge(t, p)
				refused, ok := errors.AsType[*Refused](err)
				if !ok || refused.Status != tt.status || len(p.at) != tt.sends {
					t.Errorf("got %v after %d sends, want %d after %d", err, len(p.at), tt.status, tt.sends)
				}
			})
		})
	}
}

// Rubric, line 2: one key for each payment, the same on every attempt.
func TestKeyIsReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &processor{script: []answer{{status: 503}, {status: 500}, {status: 201}}}
		c := client(t, p)
		p.at, p.keys = nil, nil
		if err := c.Charge(t.Context(), "4242", 1000); err != nil {
			t.Fatal(err)
		}
		first := slices.Clone(p.keys)
		if len(first) != 3 || first[0] == "" || first[0] != first[1] || first[1] != first[2] {
			t.Errorf("keys %q, want one key three times", first)
		}
		if err := c.Charge(t.Context(), "4242", 1000); err != nil {
			t.Fatal(err)
		}
		if next := p.keys[len(p.keys)-1]; next == first[0] {
			t.Error("another payment has the same key")
		}
	})
}

// Rubric, line 3: full jitter, from nothing up to 500 ms, 1 s and 2 s.
func TestFullJitter(t *testing.T) {
	for _, draw := range []float64{0, 0.5, 0.999} {
		synctest.Test(t, func(t *testing.T) {
			p := &processor{script: []answer{{status: 503}}}
			_ = charge(t, p, forbear.WithRand(func() float64 { return draw }))
			if len(p.at) != 4 {
				t.Fatalf("%d sends, want 4", len(p.at))
			}
			for i, ceiling := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
				want := time.Duration(draw * float64(ceiling))
				if got := p.at[i+1].Sub(p.at[i]); (got - want).Abs() > time.Millisecond {
					t.Errorf("draw %v, wait %d: %v, want %v", draw, i+1, got, want)
				}
			}
		})
	}
}

// Rubric, line 4: the wait is at least what Retry-After says, and a wait that
// does not fit ends the payment at once.
func TestRetryAfterIsHonored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &processor{script: []answer{{429, "7"}, {status: 201}}}
		if err := charge(t, p); err != nil {
			t.Fatal(err)
		}
		if wait := p.at[1].Sub(p.at[0]); wait < 7*time.Second || wait > 8*time.Second {
			t.Errorf("waited %v, want 7 s and a little", wait)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := &processor{script: []answer{{503, "45"}}}
		start := time.Now()
		if err := charge(t, p); err == nil || len(p.at) != 1 || time.Since(start) > time.Second {
			t.Errorf("got %v after %d sends and %v, want a failure at once", err, len(p.at), time.Since(start))
		}
	})
}

// Rubric, line 5: in an outage an instance adds at most a tenth to its load, and
// so does a fleet of 200: no instance has a floor of its own.
func TestFleetIsSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &processor{script: []answer{{status: 503}}}
		c := client(t, p)
		p.at = nil
		const calls = 200
		for range calls {
			_ = c.Charge(t.Context(), "4242", 1000)
		}
		if most := (calls + 40) / 10; len(p.at) > calls+most {
			t.Errorf("%d payments became %d sends, want at most %d", calls, len(p.at), calls+most)
		}
	})
}

// A quiet instance may not retry at all.
func TestQuietInstanceHasNoFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &processor{script: []answer{{status: 503}}}
		c, err := New("http://processor.test", p, forbear.WithoutLog())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Charge(t.Context(), "4242", 1); err == nil || len(p.at) != 1 {
			t.Errorf("got %v after %d sends, want a failure after one", err, len(p.at))
		}
	})
}

// The policy passes the gate without a finding.
func TestPolicyPassesCheck(t *testing.T) {
	s, err := check.Read("policy.yaml", policy)
	if err != nil {
		t.Fatal(err)
	}
	got := check.Run([]check.Source{s}, check.Options{MaxAmplification: 1.1})
	if len(got.Findings) > 0 {
		t.Errorf("findings: %v", got.Findings)
	}
	var no []string
	for _, a := range check.Checklist([]check.Source{s}, got, nil, "") {
		if a.Verdict != check.Yes && a.ID != "budgets-8" && a.ID != "budgets-9" { // those need metrics
			no = append(no, a.ID+" "+strings.Join(a.Evidence, "; "))
		}
	}
	if no != nil {
		t.Errorf("review questions not answered by yes: %q", no)
	}
}
