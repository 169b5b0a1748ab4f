package dispatch

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Whatever has changed since the claim is found right before the send, and the
// delivery goes back as it was.
func TestJobIsReleasedBeforeTheSend(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*rig, *job)
	}{
		{"the dispatcher stops", func(r *rig, _ *job) { close(r.d.stop) }},
		{"the lease is too short for an attempt", func(_ *rig, j *job) { j.delivery.LeaseEnd = time.Now().Add(12 * time.Second) }},
		{"the endpoint is held", func(r *rig, _ *job) { r.to.missing(credential, "no secret", time.Now()) }},
		{"the endpoint is disabled", func(r *rig, _ *job) {
			if err := r.d.Disable(r.Context(), "a", "test"); err != nil {
				r.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sends := 0
				r := newRig(t, respond(func(req *http.Request) (*http.Response, error) { sends++; return status(200)(req) }), webhook.Endpoint{})
				j := r.job()
				c.change(r, j)
				o := r.process(j)
				if o.Kind != store.Released || o.After != 0 || o.Attempt != nil || o.Progress.Attempts != 0 || sends != 0 {
					t.Errorf("got %+v after %d sends, want it released unattempted", o, sends)
				}
				if o.ID != 7 || o.Fence != 3 || o.Endpoint != "a" {
					t.Errorf("the outcome is of another claim: %+v", o)
				}
			})
		})
	}
}

// A store's clock that jumps ahead finds what is scheduled due. The process's own clock
// puts it off, longer each time; that the two are seconds apart is usual.
func TestScheduledJobIsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		for _, tt := range []struct {
			claims int
			in     time.Duration
			want   time.Duration // that it is put off
		}{
			{1, 5 * time.Hour, 15 * time.Minute},
			{3, 5 * time.Hour, time.Hour},
			{9, 5 * time.Hour, 5 * time.Hour},
			{1000, 200 * time.Hour, 64 * time.Hour},
			{1, 2 * time.Minute, 2 * time.Minute},
			{1, 30 * time.Second, 0},
			{1, -time.Hour, 0},
		} {
			j := r.job()
			j.delivery.Claims, j.delivery.Message.NotBefore = tt.claims, time.Now().Add(tt.in)
			kind := store.Released
			if tt.want == 0 {
				kind = store.Delivered
			}
			if o := r.process(j); o.Kind != kind || o.After != tt.want || (o.Attempt != nil) != (tt.want == 0) {
				t.Errorf("due in %v, claim %d: got %+v, want it put off by %v", tt.in, tt.claims, o, tt.want)
			}
		}
	})
}

// A delivery whose 24 hours are over is not sent, whatever it waited for.
// Its letter names the latest failure.
func TestJobExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		for _, last := range []string{"", "http_503"} {
			j := r.job()
			j.delivery.Start = time.Now().Add(-24 * time.Hour)
			j.delivery.Message.Created = j.delivery.Start
			j.delivery.Progress = edge.Progress{Attempts: 4, Last: last}
			o := r.process(j)
			if o.Kind != store.Dead || o.Why != reason.Deadline || o.Dead.Reason != "deadline" || o.Dead.Attempts != 4 {
				t.Fatalf("got %+v", o)
			}
			if o.Dead.ErrorType != last || (o.Dead.Status == 503) != (last != "") {
				t.Errorf("the letter says %q, %d", o.Dead.ErrorType, o.Dead.Status)
			}
			want := forbear.Failure{Type: cmp.Or(last, "deadline")}
			if e := r.events.Stops(); len(e) != 1 || e[0].Failure != want || e[0].Attempts != 4 || e[0].Elapsed != 24*time.Hour {
				t.Errorf("observed is %+v, want the failure %+v", e, want)
			}
			r.events.Reset()
		}
	})
}

// A failed attempt is recorded with the wait that follows it, which is when the
// delivery is due again.
func TestFailedAttemptIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(503), webhook.Endpoint{})
		o := r.process(r.job())
		if o.Kind != store.Retried || o.After <= 0 || o.Attempt == nil || o.Attempt.Wait != o.After {
			t.Fatalf("got %+v, %+v", o, o.Attempt)
		}
		if a := o.Attempt; a.Number != 1 || a.Claim != 1 || a.Status != 503 || a.ErrorType != "http_503" || a.Worker != r.d.cfg.Owner {
			t.Errorf("recorded is %+v", a)
		}
		if p := o.Progress; p.Attempts != 1 || p.Last != "http_503" || p.Pending != nil || p.Postponed != 0 || p.State.Attempt != 2 {
			t.Errorf("progress is %+v", p)
		}
		if st := r.d.Stats(); st.Failed != 1 || st.Dead+st.Postponed+st.Delivered != 0 {
			t.Errorf("counted %+v", st)
		}
	})
}

// A success is recorded without a wait, and resolves what was pending.
func TestDeliveredAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(204), webhook.Endpoint{})
		j := r.job()
		j.delivery.Progress = edge.Progress{Attempts: 1, Last: "http_503"}
		j.delivery.Progress.State.Attempt = 2
		o := r.process(j)
		if o.Kind != store.Delivered || o.Attempt == nil || o.Attempt.Number != 2 || o.Attempt.Status != 204 || o.Progress.Attempts != 2 {
			t.Errorf("got %+v, %+v", o, o.Attempt)
		}
	})
}

// An open breaker postpones without an attempt, behind the next probe, and keeps
// the failure that was pending as it is.
func TestOpenBreakerPutsAJobOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		r.open(time.Minute)
		j := r.job()
		j.delivery.Progress.Pending = &edge.Pending{Class: forbear.ClassTransient, Type: "http_503", At: time.Now()}
		o := r.process(j)
		if o.Kind != store.Postponed || o.After < time.Minute || o.After > 75*time.Second || o.Attempt != nil {
			t.Fatalf("got %+v", o)
		}
		if p := o.Progress; p.Postponed != 1 || p.Attempts != 0 || p.Pending == nil || p.Pending.Refused != 0 {
			t.Errorf("progress is %+v", p)
		}
	})
}

// spent makes the endpoint's budget refuse the next retry.
func spent(r *rig) {
	r.Helper()
	for range 100 {
		j := r.job()
		if o := r.process(j); o.Kind == store.Postponed {
			return
		}
	}
	r.Fatal("the budget is never spent")
}

// noBreaker leaves the budget alone to refuse.
func noBreaker() (e webhook.Endpoint) {
	e.Policy.Breaker.Disabled = true
	return e
}

// A spent budget postpones the decision: the attempt is recorded, the failure
// pending, and with each refusal the delivery waits longer.
func TestSpentBudgetPutsTheDecisionOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(503), noBreaker())
		spent(r)
		o := r.process(r.job())
		p := o.Progress
		if o.Kind != store.Postponed || o.Attempt == nil || o.Attempt.Wait != 0 || p.Attempts != 1 || p.Postponed != 1 {
			t.Fatalf("got %+v, %+v", o, o.Attempt)
		}
		if p.Pending == nil || p.Pending.Refused != 1 || !p.Pending.At.Equal(time.Now()) {
			t.Fatalf("pending is %+v", p.Pending)
		}
		// Asked about again: no further attempt, one refusal more.
		j := r.job()
		j.delivery.Progress = p
		again := r.process(j)
		if again.Kind != store.Postponed || again.Attempt != nil || again.Progress.Attempts != 1 || again.Progress.Pending.Refused != 2 {
			t.Errorf("asked again: %+v, pending %+v", again, again.Progress.Pending)
		}
		if o.After < time.Second || o.After > 3*time.Second || again.After > 5*time.Second {
			t.Errorf("put off for %v and %v", o.After, again.After)
		}
	})
}

// A pending failure that may be retried waits for what is left of its backoff in
// the store, and not in a slot. When nothing is left the attempt follows at once.
func TestPendingFailureIsReconsidered(t *testing.T) {
	for _, c := range []struct {
		name  string
		until time.Duration // the server's own wait, from now
		since time.Duration // the failure
		kind  store.WriteBackKind
	}{
		{"the server's wait is not over", 10 * time.Minute, time.Minute, store.Released},
		{"the backoff is over", 0, 23 * time.Hour, store.Delivered},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, status(200), webhook.Endpoint{})
				j := r.job()
				p := &edge.Pending{Class: forbear.ClassTransient, Type: "http_503", At: time.Now().Add(-c.since)}
				if c.until > 0 {
					p.Until = time.Now().Add(c.until)
				}
				j.delivery.Start = p.At
				j.delivery.Progress = edge.Progress{Attempts: 1, Pending: p, Last: "http_503"}
				j.delivery.Progress.State.Attempt = 1
				o := r.process(j)
				if o.Kind != c.kind || o.Progress.Pending != nil || o.After < c.until {
					t.Errorf("got %+v", o)
				}
				if made := o.Attempt != nil; made != (c.kind == store.Delivered) || made && o.Attempt.Number != 2 {
					t.Errorf("the attempt is %+v", o.Attempt)
				}
			})
		})
	}
}

// 410 is the end of the delivery and of its endpoint.
func TestGoneIsALetterAndDisables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(http.StatusGone), webhook.Endpoint{})
		o := r.process(r.job())
		if o.Kind != store.Dead || o.Dead.Reason != "gone" || o.Why != reason.Terminal || o.Dead.Status != 410 || o.Dead.Description == "" {
			t.Errorf("got %+v, %+v", o, o.Dead)
		}
		if r.to.enabled() || !slices.Contains(r.alerts(), "endpoint_disabled") {
			t.Error("the endpoint is still served, or no operator learns of it")
		}
		if l := r.d.LaneStats(r.to.id); l.Hold != HoldDisabled || l.Held != "the receiver responded 410 Gone" || !slices.Equal(r.d.Holding(), []string{r.to.id}) {
			t.Errorf("shown is %+v, held are %q", l, r.d.Holding())
		}
		if err := r.d.Disable(t.Context(), r.to.id, "known"); err != nil || len(r.d.Holding()) > 0 {
			t.Errorf("held are %q although a person has disabled it: %v", r.d.Holding(), err)
		}
	})
}

// goesDown makes the endpoint fail until its breaker opens, and waits until it lets
// a probe through.
func goesDown(r *rig) {
	r.Helper()
	for r.to.breaker() != breaker.Open {
		r.process(r.job())
	}
	time.Sleep(time.Minute)
}

// An attempt that a stop cuts off says nothing of the receiver: it is neither
// counted nor recorded, and the breaker gets its permit back.
func TestAttemptCutOffByAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		stopping := false
		r = newRig(t, respond(func(req *http.Request) (*http.Response, error) {
			if !stopping {
				return status(503)(req)
			}
			time.Sleep(time.Second)
			r.d.abort()
			<-req.Context().Done()
			return nil, context.Cause(req.Context())
		}), webhook.Endpoint{Concurrency: 1})
		goesDown(r)
		failures := r.to.failures
		stopping = true
		for range 10 { // more than there are permits for probes
			if o := r.process(r.job()); o.Kind != store.Released || o.Attempt != nil || o.Progress.Attempts != 0 {
				t.Errorf("got %+v", o)
			}
		}
		if r.to.failures != failures || r.to.latency != 0 || r.to.sending != 0 {
			t.Errorf("the attempt counts as one: latency %v, %d failures", r.to.latency, r.to.failures)
		}
	})
}

// A failure is one failure, however often its decision is asked for: resolution
// may fail twice, and asking again is no second time.
func TestPendingFailureIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(503), noBreaker())
		spent(r)
		j := r.job()
		j.delivery.Progress.Pending = &edge.Pending{Class: forbear.ClassDNS, Type: "dns_failure", At: time.Now()}
		j.delivery.Progress.State = forbear.State{Attempt: 1, DNSFailures: 1}
		o := r.process(j)
		if o.Kind != store.Postponed || o.Progress.State.DNSFailures != 1 {
			t.Errorf("got %+v", o)
		}
	})
}

// The attempt that finds its credential missing is postponed and begins the
// hold; one that was under way is given back. Neither is an attempt.
func TestJobWithoutItsCredential(t *testing.T) {
	t.Setenv("TEST_SIGN", webhook.NewSecret())
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{Secrets: []string{"env:SIGN"}})
		t.Setenv("TEST_SIGN", "")
		first := r.process(r.job())
		if first.Kind != store.Postponed || first.After != 0 || first.Attempt != nil || first.Progress.Postponed != 1 {
			t.Errorf("the first: %+v", first)
		}
		j := r.job()
		j.resume()
		j.attempt() // it had passed the hold when that began
		if o := r.outcome(); o.Kind != store.Released || o.Progress.Postponed != 0 {
			t.Errorf("the second: %+v", o)
		}
		if got := r.alerts(); !slices.Equal(got, []string{"credential"}) {
			t.Errorf("alerts are %v, want one", got)
		}
	})
}

// A probe of an endpoint that was down gets half of the usual time.
func TestProbesAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit time.Duration
		r := newRig(t, respond(func(req *http.Request) (*http.Response, error) {
			deadline, _ := req.Context().Deadline()
			limit = time.Until(deadline)
			return status(503)(req)
		}), webhook.Endpoint{Concurrency: 1})
		r.process(r.job())
		if limit != 10*time.Second {
			t.Fatalf("an attempt gets %v", limit)
		}
		goesDown(r)
		if o := r.process(r.job()); o.Attempt == nil || limit != 5*time.Second {
			t.Errorf("a probe gets %v", limit)
		}
	})
}
