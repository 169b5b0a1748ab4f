package upstream

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/mismatch"
	"github.com/forbear-go/forbear/internal/wait"
)

// When an address is left out, and for how long.
const (
	// minStreak is how many failures in a row it takes at least. Where the others are
	// well, and the server had the requests, it takes five.
	minStreak = 3
	outBase   = 5 * time.Second
	outCap    = 30 * time.Second
	// chance is how seldom, per attempt, an address may be left out although it is no worse
	// than the others.
	chance = 1e-6
	// doubt is added to what is known of the others' failures, which are few or old.
	doubt = 0.06
	// The share of failures is averaged over so many attempts: over few, so that an
	// outage that begins is seen at once, and over many, so that a share that wavers
	// is not taken for a small one. The larger counts.
	shortMemory, longMemory = 8, 256
)

// health is what is known of one address. It is guarded by the lock of Upstream.
type health struct {
	streak      int     // failures since the last success
	weight      float64 // of these
	seen        int     // attempts, up to longMemory
	short, long float64 // shares of failures

	out    bool
	until  time.Time // then it is tried, when out
	trial  time.Time // when a trial under way began, or zero
	back   time.Time // when it came back, or zero
	growth wait.Backoff
}

func newHealth() health { return health{growth: wait.Backoff{Base: outBase, Cap: outCap}} }

// ended records the outcome of an attempt.
func (u *Upstream) ended(s *sent, f forbear.Failure, now time.Time) {
	out, log := u.record(s, &f, now)
	if log != nil {
		log() // without the lock: a slow log must not delay requests
	}
	if out {
		// A trial is to find out about a new connection.
		s.endpoint.conns.closeIdle()
	}
}

// record is ended for the books. It returns whether the address is left out now, and
// what is to be logged, or nil.
func (u *Upstream) record(s *sent, f *forbear.Failure, now time.Time) (out bool, log func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	e, h := s.endpoint, &s.endpoint.health
	bad, known := judge(f)
	switch {
	case s.trial:
		h.trial = time.Time{}
		if h.out && known && !bad {
			return false, u.comeBack(e, now)
		} else if h.out && bad && known {
			h.until = now.Add(h.growth.Next())
			return true, nil
		}
		return false, nil
	case h.out, s.at.Before(h.back), !known:
		return false, nil // begun before it was left out
	}
	h.count(bad, f.Unsent)
	if !bad || h.streak < minStreak || !u.maySpare() || !u.outlier(e) {
		return false, nil
	}
	return true, u.leaveOut(e, f, now)
}

// count takes an attempt into account. One that was certainly never sent counts twice: a
// connection is not refused by chance.
func (h *health) count(failed, unsent bool) {
	h.seen = min(h.seen+1, longMemory)
	x := 0.0
	switch {
	case !failed:
		h.streak, h.weight = 0, 0
	case unsent:
		x = 1
		h.streak++
		h.weight += 2
	default:
		x = 1
		h.streak++
		h.weight++
	}
	h.short += (x - h.short) / float64(min(h.seen, shortMemory))
	h.long += (x - h.long) / float64(h.seen)
}

// maySpare reports whether one more address may be left out. Half of them, rounded
// up, always take part: what is too much for those is for the breaker.
func (u *Upstream) maySpare() bool { return 2*(len(u.all)-len(u.in)+1) <= len(u.all) }

// outlier reports whether the failures of an address in a row are more than chance,
// if it were like the others. Where these fail as well, nothing is gained by leaving
// it out, and the load of those that are left would grow: a dependency that fails as
// a whole, or sheds a part of its load, is the breaker's and the budget's business.
func (u *Upstream) outlier(e *endpoint) bool {
	sum, n := 0.0, 0
	for _, other := range u.in {
		if h := &other.health; other != e && h.seen >= minStreak {
			sum += max(h.short, h.long)
			n++
		}
	}
	if n == 0 {
		return false // nothing to compare with
	}
	p := doubt + (1-doubt)*sum/float64(n)
	return e.health.weight*math.Log(p) <= math.Log(chance)
}

// leaveOut takes an address out of the turns. A longer time follows when it was back
// for a short time only. It returns what logs that.
func (u *Upstream) leaveOut(e *endpoint, f *forbear.Failure, now time.Time) func() {
	h := &e.health
	if now.Sub(h.back) > outCap {
		h.growth.Reset()
	}
	h.out, h.until = true, now.Add(h.growth.Next())
	u.divide()
	attrs := []any{
		slog.String("endpoint", e.address), slog.Int("failures", h.streak), slog.String("error_type", f.Type),
		slog.Int64("for_ms", h.until.Sub(now).Milliseconds()), slog.Int("in", len(u.in)), slog.Int("endpoints", len(u.all)),
	}
	return func() { u.config.Logger.Warn("an endpoint is out of rotation", attrs...) }
}

// comeBack takes it in again. It returns what logs that.
func (u *Upstream) comeBack(e *endpoint, now time.Time) func() {
	e.health.comeBack(now)
	u.divide()
	attrs := []any{slog.String("endpoint", e.address), slog.Int("in", len(u.in)), slog.Int("endpoints", len(u.all))}
	return func() { u.config.Logger.Info("an endpoint is back in rotation", attrs...) }
}

// comeBack keeps what is known of the share of failures: from one good attempt nothing
// follows for it, and the other addresses are measured by it.
func (h *health) comeBack(now time.Time) {
	h.out, h.streak, h.weight, h.back = false, 0, 0, now
	h.until, h.trial = time.Time{}, time.Time{}
}

// trialTime is after how long a trial of which nothing is heard is over.
const trialTime = outCap

// due returns an address whose time is over, to be tried by this request. One request
// tries it. A request that could not be retried does so only when no other has for a
// while.
func (u *Upstream) due(r *http.Request, now time.Time) *endpoint {
	for _, e := range u.all {
		h := &e.health
		if !h.out || now.Before(h.until) || !h.trial.IsZero() && now.Sub(h.trial) < trialTime {
			continue
		}
		if !httpretry.NeedsKey(r.Method) || r.Header.Get(httpretry.HeaderKey) != "" || now.Sub(h.until) > outBase {
			return e
		}
	}
	return nil
}

// divide finds those that take part in the turns. Where addresses have gone, more than
// half may be out: the next to be tried come back. It is called with mu held.
func (u *Upstream) divide() {
	for {
		u.in = slices.DeleteFunc(slices.Clone(u.all), func(e *endpoint) bool { return e.health.out })
		if 2*(len(u.all)-len(u.in)) <= len(u.all) {
			return
		}
		var first *endpoint
		for _, e := range u.all {
			if e.health.out && (first == nil || e.health.until.Before(first.health.until)) {
				first = e
			}
		}
		first.health.comeBack(time.Now())
	}
}

// judge tells the failures of an address from those of the call. known is false for an
// attempt that says nothing of its address, such as one whose caller has left.
//
// A server that responds at all is a good address, whatever it says of the request,
// except that it fails. 429 is a limit of the caller's, and the same at each address. An
// address that is certainly not the dependency is bad, too: a certificate of someone else
// is surfaced for each call that met it, and there need not be more of these.
func judge(f *forbear.Failure) (bad, known bool) {
	switch f.Class {
	case forbear.ClassSuccess, forbear.ClassThrottled, forbear.ClassUnauthorized:
		return false, true
	case forbear.ClassTransient, forbear.ClassTimeout:
		// An old connection says nothing of a new one.
		return f.Type != errtype.InProgress, f.Type != errtype.Resend && f.Type != errtype.Silent
	case forbear.ClassCertificate, forbear.ClassDNS: // an endpoint may be a name
		return true, true
	case forbear.ClassTerminal, forbear.ClassUnknown:
		if _, status := f.Err.(httpretry.StatusError); status {
			return false, true
		}
		_, other := errors.AsType[mismatch.Error](f.Err)
		bad = other || f.Unsent || f.Type == "tls_alert" || f.Type == "tls_record"
		return bad, bad
	}
	return false, false
}
