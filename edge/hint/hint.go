// Package hint joins the advice that comes from several places of one response.
package hint

import "github.com/forbear-go/forbear"

// Stricter returns the stricter of both hints, field by field: the larger floor,
// the smaller count, any stop.
func Stricter(h, o forbear.Hint) forbear.Hint {
	h.Floor = max(h.Floor, o.Floor)
	h.Spread = max(h.Spread, o.Spread)
	h.Base = max(h.Base, o.Base)
	if h.MaxRetries == 0 || o.MaxRetries > 0 && o.MaxRetries < h.MaxRetries {
		h.MaxRetries = o.MaxRetries
	}
	h.Stop = h.Stop || o.Stop
	h.NoBackoff = h.NoBackoff || o.NoBackoff
	h.SameKey = h.SameKey || o.SameKey
	h.LongerDeadline = h.LongerDeadline || o.LongerDeadline
	return h
}
