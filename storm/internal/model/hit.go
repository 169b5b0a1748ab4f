package model

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/hint"
	"github.com/forbear-go/forbear/edge/httpcode"
)

// Hit is a share of a service's requests that fail or are slow while a fault holds.
type Hit struct {
	// Mode says which requests: one of the Fail modes, or HitOutage or HitSlow.
	Mode  int
	Share float64
	// Method limits the hit to requests of that method; empty is any.
	Method string
	// Fault is the index of the fault, whose Failure or SlowTime the requests get.
	Fault int
}

// The modes of a [Hit] beside those of failing.
const (
	HitOutage = Modes + iota
	HitSlow
)

// Hits appends to all the hits on service i at t, in ns since the start. Hits of one mode
// that differ in nothing else are one, and the greatest counts. Others add up: a tenth
// that gets a 404 and another that gets a 503 are a fifth.
func (m *Model) Hits(i int, t int64, all []Hit) []Hit {
	for j := range m.Faults {
		f := &m.Faults[j]
		if !f.Hits(i) || !f.holds(t) {
			continue
		}
		all = m.addHit(all, Hit{HitOutage, f.Outage, f.Method, j})
		all = m.addHit(all, Hit{HitSlow, f.Slow, f.Method, j})
		for mode, rate := range f.Failing {
			all = m.addHit(all, Hit{mode, rate, f.Method, j})
		}
	}
	return all
}

func (m *Model) addHit(all []Hit, h Hit) []Hit {
	if h.Share == 0 {
		return all
	}
	for i := range all {
		if o := &all[i]; o.Mode == h.Mode && o.Method == h.Method && m.Faults[o.Fault].alike(&m.Faults[h.Fault]) {
			o.Share = max(o.Share, h.Share)
			return all
		}
	}
	return append(all, h)
}

// alike reports whether f and g do the same to a request that they hit.
func (f *Fault) alike(g *Fault) bool {
	return f.Failure == g.Failure && f.SlowTime == g.SlowTime
}

// Response returns the failure that the HTTP edge makes of a response of that status,
// with a Retry-After if that is above 0: a floor, and 10 % of it (at most 5 s) as a spread.
func Response(status int, retryAfter time.Duration) forbear.Failure {
	f := forbear.Failure{Class: httpcode.Class(status, false), Type: httpcode.Label(status)}
	if retryAfter > 0 {
		f.Hint.Floor = retryAfter
		f.Hint.Spread = hint.Spread(retryAfter, hint.SpreadShare)
	}
	return f
}

// Refusal is the 503 of a service that is full, sheds load or is out.
func Refusal(retryAfter time.Duration) forbear.Failure { return Response(503, retryAfter) }
