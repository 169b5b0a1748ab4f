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

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/label"
)

// Refused calls are what an attack looks like from inside, and a client whose token has
// expired. They are counted, logged and audited, each with a bound: a caller without a token
// must not be able to fill a disk.
const (
	refusalLine  = time.Second // between two lines of the log about one source
	refusalAudit = time.Minute // between two entries of the audit trail about one source
	maxAudited   = 60          // entries in an hour about all of them: the trail is kept permanently
	refusalFresh = time.Minute // for which a source is remembered
	maxSources   = 1024        // those beyond are one
	otherSources = "other sources"
)

// refusals are the calls that were refused, by the address that they came from. The zero
// value has none. It is safe for concurrent use.
type refusals struct {
	unauthorized, forbidden atomic.Int64

	mu      sync.Mutex
	sources map[string]*source
	audited []time.Time // the entries of the last hour
}

// source is an address, and what was refused to it.
type source struct {
	last            time.Time
	logged, audited time.Time
	silent, unsaid  int // refused since then
}

// count adds a refusal of a source, and returns how many are to be logged and to be
// audited with it.
func (f *refusals) count(from string, now time.Time) (lines, entries int) {
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
	s.last = now
	if s.silent++; now.Sub(s.logged) >= refusalLine {
		lines, s.silent, s.logged = s.silent, 0, now
	}
	f.audited = slices.DeleteFunc(f.audited, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if s.unsaid++; now.Sub(s.audited) >= refusalAudit && len(f.audited) < maxAudited {
		entries, s.unsaid, s.audited = s.unsaid, 0, now
		f.audited = append(f.audited, now)
	}
	return lines, entries
}

// refused records that a call was refused, with 401 or 403.
func (s *Service) refused(r *http.Request, status int, why string) {
	f := &s.refusals
	if status == http.StatusUnauthorized {
		f.unauthorized.Add(1)
	} else {
		f.forbidden.Add(1)
	}
	from := sourceOf(r.RemoteAddr)
	lines, entries := f.count(from, time.Now())
	path := label.Clean(r.URL.Path)
	if lines > 0 {
		s.log.Warn("calls to the delivery API refused", slog.String("source", from), slog.Int("calls", lines), slog.Int("status", status),
			slog.String("cause", why), slog.String("token", callerOf(r).Name), slog.String("path", path))
	}
	if entries > 0 {
		s.auditRefused(r, entries, why, path)
	}
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
	e := queue.Entry{Who: actor(r), Action: "refused", Target: path, Detail: plural(calls) + " refused of late from there: " + why}
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
