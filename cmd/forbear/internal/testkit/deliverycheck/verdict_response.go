package deliverycheck

import "slices"

// responded judges the response to one HTTP offer by what had been offered
// before it (rules 2 and 3). Only what can be known is judged: of two calls in
// flight together either may have been first.
func (j *judge) responded(o *Offer) {
	if o.Channel != HTTP {
		return
	}
	var same, other, known, rivals int
	for _, e := range o.Endpoints {
		s := j.stories[Identity{e, o.ID}]
		same += count(s.before(o, true))
		other += count(s.before(o, false))
		known += count(s.knew(o, true))
		rivals += count(s.knew(o, false))
	}
	switch o.Result {
	case Accepted:
		if known == len(o.Endpoints) {
			j.add(3, "accepted as new, but known everywhere: %v%s", o, j.elsewhere(o.ID))
		}
		if rivals > 0 {
			j.add(2, "accepted, but it conflicts: %v%s", o, j.elsewhere(o.ID))
		}
	case Duplicate:
		if same < len(o.Endpoints) && o.Calls == 1 {
			j.add(2, "a duplicate of nothing, at %d of %d endpoints: %v%s", len(o.Endpoints)-same, len(o.Endpoints), o, j.elsewhere(o.ID))
		}
		if rivals > 0 {
			j.add(2, "acknowledged as a duplicate, but it conflicts: %v%s", o, j.elsewhere(o.ID))
		}
	case Refused:
		if other == 0 {
			j.add(2, "refused without a rival: %v%s", o, j.elsewhere(o.ID))
		} else if j.wonEverywhere(o) {
			j.add(3, "refused, though its content is the one that arrived everywhere: %v%s", o, j.elsewhere(o.ID))
		}
	case Unexpected:
		j.add(2, "unexpected response: %v%s", o, j.elsewhere(o.ID))
	default:
		j.add(4, "without an end: %v", o)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// before reports whether another offer of the same content, or of another one,
// may have been there when o got its response.
func (s *story) before(o *Offer, same bool) bool {
	return slices.ContainsFunc(s.offers, func(p *Offer) bool {
		return p != o && p.standing() && (p.Sum == o.Sum) == same && p.Begin < o.End
	})
}

// knew reports whether the same content, or another one, was certainly there
// before the call that got the response: it was acknowledged, or had arrived.
func (s *story) knew(o *Offer, same bool) bool {
	acknowledged := slices.ContainsFunc(s.offers, func(p *Offer) bool {
		return p != o && p.acknowledged() && (p.Sum == o.Sum) == same && p.End < o.Last
	})
	return acknowledged || s.winner != nil && (s.winner.sum == o.Sum) == same && s.arrivals[0].Tick < o.Last
}

// wonEverywhere reports whether the content of an offer is the one that arrived
// at all of its endpoints.
func (j *judge) wonEverywhere(o *Offer) bool {
	return !slices.ContainsFunc(o.Endpoints, func(endpoint string) bool {
		s := j.stories[Identity{endpoint, o.ID}]
		return s.winner == nil || s.winner.sum != o.Sum
	})
}
