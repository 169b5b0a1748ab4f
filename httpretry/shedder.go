package httpretry

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/problem"
)

// Priority says how readily a request is turned away under overload.
type Priority uint8

const (
	Normal    Priority = iota // turned away when things are bad
	Sheddable                 // turned away first: batch work, prefetching
	Critical                  // turned away last
)

// Load is how overloaded a server says it is.
type Load uint8

const (
	LoadFine  Load = iota // nothing is turned away
	LoadHigh              // Sheddable requests are
	LoadBad               // Normal ones too
	LoadAwful             // everything is
)

// Shedder turns requests away while the server is overloaded: 503 with a
// Retry-After that differs from response to response, so that the clients do not
// come back together. Whatever measures the load calls SetLoad. The zero
// value sheds nothing. It is safe for concurrent use.
type Shedder struct {
	// Priority says how important a request is; nil means Normal for all.
	Priority func(*http.Request) Priority
	// RetryAfter is the shortest wait that is asked for; the longest is twice
	// that. Default 1 s. The header has whole seconds.
	RetryAfter time.Duration

	load atomic.Uint32
	shed [3]atomic.Int64
}

// SetLoad sets how overloaded the server is.
func (s *Shedder) SetLoad(l Load) { s.load.Store(uint32(l)) }

// Shed returns how many requests of a priority were turned away so far.
func (s *Shedder) Shed(p Priority) int64 { return s.shed[min(p, Critical)].Load() }

// Handler returns next behind the shedder.
func (s *Shedder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		load := Load(s.load.Load())
		if load == LoadFine {
			next.ServeHTTP(w, r)
			return
		}
		p := Normal
		if s.Priority != nil {
			p = min(s.Priority(r), Critical)
		}
		if load < threshold(p) {
			next.ServeHTTP(w, r)
			return
		}
		s.shed[p].Add(1)
		s.turnAway(w, r)
	})
}

// threshold returns the load from which requests of a priority are turned away.
func threshold(p Priority) Load {
	switch p {
	case Sheddable:
		return LoadHigh
	case Critical:
		return LoadAwful
	default:
		return LoadBad
	}
}

// turnAway responds with 503 and a wait drawn from a range as wide as the wait
// itself, in the whole seconds of the header.
func (s *Shedder) turnAway(w http.ResponseWriter, r *http.Request) {
	least := max(int(cmp.Or(s.RetryAfter, time.Second)/time.Second), 1)
	w.Header().Set("Retry-After", strconv.Itoa(least+rand.IntN(least+1)))
	problem.Write(w, problem.Problem{
		Type: problem.Namespace + "overloaded", Title: "Overloaded", Status: http.StatusServiceUnavailable,
		Detail:   "the server is shedding load; come back after the time given",
		Instance: r.URL.EscapedPath(), CorrelationID: inbound.Correlation(r.Header),
	})
}
