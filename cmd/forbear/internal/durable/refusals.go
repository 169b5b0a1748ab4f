package durable

import (
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/label"
)

// Calls that are refused are what an attack looks like from inside, and a client whose
// token has ended. They are counted, logged and in the audit trail, each with a bound: who
// has no token must not be able to fill a disk.
const (
	refusalLine  = time.Second     // between two lines of the log about one source
	refusalAudit = time.Minute     // between two entries of the audit trail about one source
	maxAudited   = 60              // entries in an hour about all of them: the trail is kept for good
	refusalFresh = time.Minute     // for which failures count
	freeFailures = 10              // of one source, before it is slowed
	refusalDelay = time.Second / 2 // of what is refused then; who has a token is not delayed
	maxDelayed   = 128             // at once: one more is refused without a delay
	maxSources   = 1024            // those beyond are one
	otherSources = "other sources"
)

// refusals are the calls that were refused, by the address that they came from. The zero
// value has none, and slows no one. It is safe for concurrent use.
type refusals struct {
	delay                   time.Duration
	unauthorized, forbidden atomic.Int64

	delayed atomic.Int64
	mu      sync.Mutex
	sources map[string]*source
	audited []time.Time // the entries of the last hour
}

// source is an address, and what was refused to it.
type source struct {
	failures        int // for want of a token, of late
	last            time.Time
	logged, audited time.Time
	silent, unsaid  int // refused since then
}

// count adds a refusal of a source, and returns how many are to be logged and to be
// audited with it, and whether it is to be slowed.
func (f *refusals) count(from string, status int, now time.Time) (lines, entries int, slow bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sources == nil {
		f.sources = map[string]*source{}
	}
	if f.sources[from] == nil && len(f.sources) >= maxSources {
		maps.DeleteFunc(f.sources, func(_ string, s *source) bool { return now.Sub(s.last) > refusalFresh })
		if len(f.sources) >= maxSources {
			from = otherSources
		}
	}
	s := f.sources[from]
	if s == nil {
		s = &source{}
		f.sources[from] = s
	}
	if now.Sub(s.last) > refusalFresh {
		s.failures = 0
	}
	if s.last = now; status == http.StatusUnauthorized {
		s.failures++
	}
	if s.silent++; now.Sub(s.logged) >= refusalLine {
		lines, s.silent, s.logged = s.silent, 0, now
	}
	f.audited = slices.DeleteFunc(f.audited, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if s.unsaid++; now.Sub(s.audited) >= refusalAudit && len(f.audited) < maxAudited {
		entries, s.unsaid, s.audited = s.unsaid, 0, now
		f.audited = append(f.audited, now)
	}
	return lines, entries, s.failures > freeFailures
}

// refused records that a call was refused, with 401 or 403, and slows those who guess.
func (s *Service) refused(r *http.Request, status int, why string) {
	f := &s.refusals
	if status == http.StatusUnauthorized {
		f.unauthorized.Add(1)
	} else {
		f.forbidden.Add(1)
	}
	from := sourceOf(r.RemoteAddr)
	lines, entries, slow := f.count(from, status, time.Now())
	path := label.Clean(r.URL.Path)
	if lines > 0 {
		s.log.Warn("calls to the delivery API refused", slog.String("source", from), slog.Int("calls", lines), slog.Int("status", status),
			slog.String("cause", why), slog.String("token", callerOf(r).Name), slog.String("path", path))
	}
	if entries > 0 {
		s.auditRefused(r, entries, why, path)
	}
	if !slow {
		return
	}
	if f.delayed.Add(1) <= maxDelayed {
		select {
		case <-time.After(f.delay):
		case <-r.Context().Done():
		}
	}
	f.delayed.Add(-1)
}

// sourceOf returns the address that a call came from; of IPv6 the network, of which a
// caller has all.
func sourceOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "unknown"
	}
	a := at.Addr().Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		return netip.PrefixFrom(a, 64).Masked().String()
	}
	return a.String()
}

// auditRefused records in the audit trail that calls were refused.
func (s *Service) auditRefused(r *http.Request, calls int, why, path string) {
	e := deadletter.Entry{Who: actor(r), Action: "refused", Target: path, Detail: plural(calls) + " refused of late from there: " + why}
	if err := s.DB.DeadLetters().Audit(r.Context(), e); err != nil {
		s.log.Error("audit not written", "action", e.Action, "target", path, "error", err.Error())
	}
}

// plural counts calls.
func plural(calls int) string {
	if calls == 1 {
		return "1 call was"
	}
	return strconv.Itoa(calls) + " calls were"
}
