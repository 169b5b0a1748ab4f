package dispatch

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

var (
	good = attempt{failure: forbear.Failure{Class: forbear.ClassSuccess}, record: deadletter.Attempt{Status: 200}}
	bad  = attempt{failure: forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}, record: deadletter.Attempt{Status: 503}}
	gone = attempt{failure: forbear.Failure{Class: forbear.ClassTerminal, Type: "http_410"}, record: deadletter.Attempt{Status: 410}}
)

// ended lets the receiver learn from an attempt that ended at a time.
func (r *rig) ended(a attempt, at time.Time) {
	a.ep, a.look, a.record.At = r.to.endpoint(), time.Now(), at
	r.to.begin()
	r.to.learn(&a)
}

// An endpoint is disabled when it has failed for long enough and often enough,
// without any success between.
func TestEndpointIsDisabled(t *testing.T) {
	for _, c := range []struct {
		name      string
		responses []attempt // an hour apart
		after     time.Duration
		want      string // the reason; empty: it stays enabled
	}{
		{"too few failures", slices.Repeat([]attempt{bad}, 9), time.Hour, ""},
		{"not for long enough", slices.Repeat([]attempt{bad}, 12), 12 * time.Hour, ""},
		{"ten failures, for nine hours", slices.Repeat([]attempt{bad}, 10), 9 * time.Hour, "no success since "},
		{"by default after 24 h", slices.Repeat([]attempt{bad}, 25), 0, "no success since "},
		{"by default not before", slices.Repeat([]attempt{bad}, 24), 0, ""},
		{"a success between", append(append(slices.Repeat([]attempt{bad}, 9), good), slices.Repeat([]attempt{bad}, 9)...), time.Hour, ""},
		{"gone at once", []attempt{gone}, time.Hour, "the receiver responded 410 Gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, status(200), webhook.Endpoint{DisableAfter: c.after})
				for _, resp := range c.responses {
					r.ended(resp, time.Now())
					time.Sleep(time.Hour)
				}
				r.chores()
				stored, err := r.store.Endpoints(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				disabled := c.want != ""
				if r.to.enabled() == disabled || (stored[0].State == webhook.Disabled) != disabled || !strings.HasPrefix(stored[0].Reason, c.want) {
					t.Errorf("enabled %v, stored as %s: %q", r.to.enabled(), stored[0].State, stored[0].Reason)
				}
				if n := len(r.alerts()); n > 0 != disabled {
					t.Errorf("%d alerts", n)
				}
			})
		})
	}
}

// stateless stores nothing of how endpoints fare.
type stateless struct{ store.Store }

func (stateless) SetEndpointState(context.Context, string, webhook.EndpointState, webhook.Party, string, time.Time) error {
	return errors.New("the disk is full")
}

// The store raises the alert with the state of a disabled endpoint. Where that cannot be
// stored the alert still comes, once for all attempts that were under way.
func TestDisableThatCannotBeStored(t *testing.T) {
	for _, stored := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, status(200), webhook.Endpoint{})
			if !stored {
				r.d.cfg.Store = stateless{r.store}
			}
			for range 10 {
				r.ended(gone, time.Now())
			}
			r.chores()
			list, err := r.store.AlertPage(t.Context(), 0, 10)
			if err != nil || len(list) != 1 || list[0].Reason != store.AlertDisabled || list[0].Count != 1 {
				t.Errorf("stored %v: the alerts are %+v, %v", stored, list, err)
			}
		})
	}
}

// The store learns of the begin and the end of a row of failures, and of nothing
// between: a write for each attempt would double what a delivery costs.
func TestRowOfFailuresIsStoredTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		began := time.Now()
		for i, c := range []struct {
			r      attempt
			writes int
			since  time.Time
		}{{good, 0, time.Time{}}, {bad, 1, began}, {bad, 0, began}, {good, 1, time.Time{}}, {good, 0, time.Time{}}} {
			r.ended(c.r, began.Add(time.Duration(max(i-1, 0))*time.Minute))
			if n := len(r.d.chores); n != c.writes {
				t.Errorf("attempt %d: %d writes, want %d", i, n, c.writes)
			}
			r.chores()
			if stored, _ := r.store.Endpoints(t.Context()); !stored[0].FailingSince.Equal(c.since) {
				t.Errorf("attempt %d: failing since %v, want %v", i, stored[0].FailingSince, c.since)
			}
		}
	})
}

// An attempt that is under way while an operator disables the endpoint neither enables
// it nor becomes the reason.
func TestAttemptUnderWayLiftsNoDisable(t *testing.T) {
	for _, code := range []int{200, 410, 500} {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(t, respond(func(req *http.Request) (*http.Response, error) {
				if err := r.d.Disable(r.Context(), "a", "abuse"); err != nil {
					t.Error(err)
				}
				return status(code)(req)
			}), webhook.Endpoint{})
			if code == 200 {
				r.ended(bad, time.Now())
				r.chores()
			}
			r.process(r.job())
			r.chores()
			if e, err := r.store.Endpoint(t.Context(), "a"); err != nil || e.State != webhook.Disabled || e.DisabledBy != webhook.ByOperator || e.Reason != "abuse" {
				t.Errorf("after %d the endpoint is %s by %s: %s, %v", code, e.State, e.DisabledBy, e.Reason, err)
			}
		})
	}
}

// An endpoint that is enabled again begins without its failures.
func TestEnabledEndpointForgetsItsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		for range 20 {
			r.ended(bad, time.Now())
		}
		if err := r.d.Disable(t.Context(), "a", "test"); err != nil {
			t.Fatal(err)
		}
		if out, err := r.d.TestAndEnable(t.Context(), "a", webhook.ByOperator); err != nil || !out.Enabled {
			t.Fatalf("got %+v, %v", out, err)
		}
		if e := r.to; r.d.receiver("a") != r.to || e.failures != 0 || !e.config().FailingSince.IsZero() || !e.enabled() {
			t.Errorf("%d failures since %v", e.failures, e.config().FailingSince)
		}
	})
}

// What an address responds that the endpoint has no more says nothing of the new one.
func TestFormerAddressSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		late := gone
		late.ep, late.look = r.to.endpoint(), time.Now()
		r.to.begin()
		if _, err := r.d.UpdateEndpoint(t.Context(), "a", func(e *webhook.Endpoint) error { e.URL = "https://other.example.com/"; return nil }); err != nil {
			t.Fatal(err)
		}
		r.to.learn(&late)
		if r.to.sending != 0 || !r.to.enabled() || r.to.failures != 0 || len(r.alerts()) != 0 {
			t.Errorf("%d under way, enabled %v, %d failures", r.to.sending, r.to.enabled(), r.to.failures)
		}
	})
}
