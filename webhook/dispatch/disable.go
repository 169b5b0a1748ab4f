package dispatch

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

const (
	defaultDisable = 24 * time.Hour // of failures
	// An endpoint with little traffic is not disabled for the odd failure in a
	// day: that many in a row are needed, too.
	leastFailures = 10
)

// countInRow counts an attempt that ended at a time of the wall clock, which is stored and
// compared with what other processes have stored. The store learns when a row of failures
// begins and ends, and of an endpoint that is gone, or has failed for too long: nothing is
// sent to it from then on. Between, nothing is written: a write for each attempt would
// double what a delivery costs. The caller holds mu.
func (r *receiver) countInRow(a *attempt, at time.Time) {
	was, why := r.state.failingSince, ""
	if a.delivered() {
		r.failures, r.state.failingSince, r.good = 0, time.Time{}, time.Now()
	} else {
		r.failures++
		if was.IsZero() {
			r.state.failingSince = at
		}
		why = r.hopeless(a, at)
	}
	d, since := r.d, r.state.failingSince
	switch {
	case why != "":
		r.state.is, r.state.by, r.state.reason = webhook.Disabled, webhook.ByForbear, why
		r.later(func() {
			d.log.Error("endpoint disabled", slog.String("endpoint", r.id), slog.String("reason", why))
			d.disable(r.id, why, since)
		})
	case was.IsZero() != since.IsZero():
		r.later(func() { d.failing(r.id, since) })
	}
}

// hopeless returns why the endpoint is to be disabled after a failure, or "". The caller
// holds mu.
func (r *receiver) hopeless(a *attempt, at time.Time) string {
	limit := r.endpoint().conf.DisableAfter
	if limit <= 0 {
		limit = defaultDisable
	}
	since := r.state.failingSince
	switch {
	case r.state.is != webhook.Enabled:
	case a.record.Status == http.StatusGone:
		return "the receiver responded 410 Gone"
	case r.failures >= leastFailures && at.Sub(since) >= limit:
		return "no success since " + since.UTC().Format(time.RFC3339)
	}
	return ""
}

// abandoned reports whether the endpoint has been disabled for so long that what was
// sent to it then is dead by now. Nothing more is kept for it until it is enabled: a
// receiver that is permanently gone would fill the store with letters. Until then its
// messages wait for it, so that a pause loses nothing.
func (r *receiver) abandoned(now time.Time) bool {
	total := cmp.Or(r.endpoint().retryer.Policy().Total, 24*time.Hour)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.is == webhook.Disabled && now.Sub(r.state.since) > total
}
