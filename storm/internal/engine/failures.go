package engine

import (
	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// failures are what attempts come back with, listed once: a task has room for an index.
// A service's failures begin at serviceState.failures.
type failures []forbear.Failure

// The first is what all services share: a plain 500. It is also what the layer above
// gets when a call below has failed, whatever that failed with: the service responds
// with a 500 of its own.
const failed500 = 0

// The failures of a service, counted from its first.
const (
	refused  = iota // full, shedding or out: a 503
	limited         // above the limit: a 429
	timedOut        // the server's own timeout: a 503
	perService
)

// failuresOf lists the failures of m: the services' own, then those of the faults.
func failuresOf(m *model.Model) failures {
	all := failures{failed500: model.FailedResponse}
	for i := range m.Services {
		v := &m.Services[i]
		all = append(all, v.Refusal, v.Limit.Refusal, model.Refusal(0))
	}
	for i := range m.Faults {
		all = append(all, m.Faults[i].Failure)
	}
	return all
}

// failureOf returns the index of the failure that h brings, or usual where its fault
// names none.
func (x *engine) failureOf(h *model.Hit, usual uint16) uint16 {
	if x.m.Faults[h.Fault].Failure.Type == "" {
		return usual
	}
	return uint16(1 + perService*len(x.m.Services) + h.Fault)
}

// struck returns the hit of that mode that falls on task k, or nil. Hits share one random
// number, so that their shares add up; the call's luck is that of sticky ones. An abandoned
// task may be judged by the method of the call that has taken its call's place.
func (x *engine) struck(v *serviceState, k *task, mode int) *model.Hit {
	u, drawn := 0.0, false
	for i := range v.hits {
		h := &v.hits[i]
		if h.Mode != mode || h.Method != "" && h.Method != x.m.Edges[x.calls[k.call].edge].Plan.Method {
			continue
		}
		switch {
		case drawn:
		case mode == model.FailSticky:
			u = float64(k.luck)
		case mode == model.HitOutage && h.Share >= 1:
		default:
			u = x.servers.Float64()
		}
		drawn = true
		share := h.Share
		if mode == model.FailLoad {
			share = model.LoadFailure(share, x.m.Nominal[k.service], v.load.Rate())
		}
		if u < share {
			return h
		}
		u -= share
	}
	return nil
}

// fails returns the error of the faults that hold now that falls on task k, or nil.
func (x *engine) fails(v *serviceState, k *task) *model.Hit {
	for _, mode := range [...]int{model.FailSticky, model.FailIndependent, model.FailLoad} {
		if h := x.struck(v, k, mode); h != nil {
			return h
		}
	}
	return nil
}
