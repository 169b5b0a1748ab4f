package durable

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/internal/rate"
)

// Refused calls are what an attack looks like from inside, and a client whose token has
// expired. They are counted, logged and audited, with bounds in events a second: a caller
// without a token must not be able to fill a disk.
const (
	refusalLines   = 1.0      // of the log, about one source
	refusalEntries = 1.0 / 60 // of the audit trail, about all: it is kept permanently
)

// refusals are the calls that were refused. The zero value has none. It is safe for
// concurrent use.
type refusals struct {
	unauthorized, forbidden atomic.Int64
	unsaid, unaudited       atomic.Int64 // since the last line, and the last entry
	limits                  rate.Limits
}

// count adds a refusal of a source, and returns how many are to be logged and to be
// audited with it.
func (f *refusals) count(from string, now time.Time) (line, entry int64) {
	f.unsaid.Add(1)
	f.unaudited.Add(1)
	if f.limits.Take("line "+from, refusalLines, 1, now) == 0 {
		line = f.unsaid.Swap(0)
	}
	if f.limits.Take("entry", refusalEntries, 1, now) == 0 {
		entry = f.unaudited.Swap(0)
	}
	return line, entry
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
	line, entry := f.count(from, time.Now())
	path := label.Clean(r.URL.Path)
	if line > 0 {
		s.log.Warn("calls to the delivery API refused", slog.String("source", from), slog.Int64("calls", line), slog.Int("status", status),
			slog.String("cause", why), slog.String("token", callerOf(r).Name), slog.String("path", path))
	}
	if entry > 0 {
		s.audit(r, "refused", path, plural(entry)+" refused recently, the latest from this address: "+why)
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

// plural counts calls.
func plural(calls int64) string {
	if calls == 1 {
		return "1 call was"
	}
	return strconv.FormatInt(calls, 10) + " calls were"
}
