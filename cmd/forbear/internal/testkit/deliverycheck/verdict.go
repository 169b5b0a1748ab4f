package deliverycheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Evidence is everything that a run left behind. It is plain data, so that a test
// can write a breach by hand and see that the verdict finds it.
type Evidence struct {
	Endpoints []Endpoint
	Offers    []*Offer
	Arrivals  []Arrival
	Letters   []Letter
	Kills     []Kill
	// Left counts the rows that are in the outbox at the end.
	Left int
	// Deadlocks is what the database counted.
	Deadlocks int
}

// story is everything about one identity. Every rule but order and responses is
// about a single identity and is judged on its story.
type story struct {
	Identity
	endpoint Endpoint
	offers   []*Offer
	arrivals []Arrival
	letters  []Letter
	entries  []*entry // the contents that were offered; not those of invalid rows
	winner   *entry   // the content that arrived, or nil
}

// entry is one content of an identity, with what was offered of it. Rivals of one
// identity have one entry each; at most one of them may win.
type entry struct {
	content   *Content
	sum, wire Sum
	acked     []*Offer // over HTTP
	rows      []*Offer // committed
	letters   int
}

// judge compares what a run left behind, story by story. It adds the violations to
// its report. It belongs to one call of [Judge]. The maps are indexes: the evidence
// itself is never changed.
type judge struct {
	*Report
	ev        *Evidence
	endpoints map[string]Endpoint
	stories   map[Identity]*story
	ids       map[string][]*story // of the same id
}

// Judge holds the evidence to the rules. It looks at a run as a whole, after its
// end: what is missing can be missed only then.
func Judge(ev *Evidence) *Report {
	j := &judge{newReport(ev), ev, map[string]Endpoint{}, map[Identity]*story{}, map[string][]*story{}}
	for _, e := range ev.Endpoints {
		j.endpoints[e.ID] = e
	}
	j.collect()
	byOffer := func(a, b *story) int { return cmp.Compare(a.offers[0].N, b.offers[0].N) }
	list := slices.SortedFunc(maps.Values(j.stories), byOffer)
	for _, s := range list {
		j.arrived(s)
		j.promised(s)
		j.deadLettered(s)
		j.invalid(s)
		j.counted(s)
	}
	for _, o := range ev.Offers {
		j.responded(o)
	}
	j.ordered(list)
	if ev.Left > 0 {
		j.add(7, "%d rows are left in the outbox", ev.Left)
	}
	if ev.Deadlocks > 0 {
		j.add(8, "the database counted %d deadlocks", ev.Deadlocks)
	}
	return j.Report
}

// collect sorts the evidence by identity. What belongs to none is a violation.
// Something that belongs to no offer is as bad as something that is missing: it went
// to a stranger or was made up.
func (j *judge) collect() {
	for _, o := range j.ev.Offers {
		for _, e := range o.Endpoints {
			i := Identity{e, o.ID}
			s := j.stories[i]
			if s == nil {
				s = &story{Identity: i, endpoint: j.endpoints[e]}
				j.stories[i] = s
				j.ids[o.ID] = append(j.ids[o.ID], s)
			}
			s.offer(o)
		}
	}
	for _, l := range j.ev.Letters {
		s := j.stories[Identity{l.Destination, l.EventID}]
		if s == nil {
			j.add(4, "a dead letter of what was not offered: %v", &l)
			continue
		}
		s.letters = append(s.letters, l)
	}
	for _, a := range j.ev.Arrivals {
		s := j.stories[Identity{a.Endpoint, a.ID}]
		switch {
		case a.Path != path(a.Endpoint):
			j.add(4, "arrived at another path: %v", &a)
		case s == nil:
			j.add(4, "arrived at %s, where it was not offered: %v%s", a.Endpoint, &a, j.elsewhere(a.ID))
		default:
			s.arrivals = append(s.arrivals, a)
		}
	}
	for _, s := range j.stories {
		s.decide()
	}
}

// offer adds an offer to the story. An invalid row gets no entry: its content must
// never arrive, so it cannot win.
func (s *story) offer(o *Offer) {
	s.offers = append(s.offers, o)
	if o.Invalid != "" {
		return
	}
	e := s.entry(o.Sum)
	if e == nil {
		e = &entry{content: &o.Content, sum: o.Sum, wire: o.Content.Wire(s.endpoint, s.ID)}
		s.entries = append(s.entries, e)
	}
	if o.acknowledged() {
		e.acked = append(e.acked, o)
	}
	if o.Result == Committed {
		e.rows = append(e.rows, o)
	}
}

// entry returns what was offered with a content, or nil.
func (s *story) entry(sum Sum) *entry {
	for _, e := range s.entries {
		if e.sum == sum {
			return e
		}
	}
	return nil
}

// decide finds out which content won: the one that arrived. Where several look
// alike on the wire, it is the one that was acknowledged, or else the one that
// has rows and no letter of them. The choice favours the product where the evidence
// allows several readings: a check that cries wolf is soon switched off.
func (s *story) decide() {
	for i := range s.letters {
		c := s.letters[i].content()
		if e := s.entry(c.Sum()); e != nil {
			e.letters++
		}
	}
	if len(s.arrivals) == 0 {
		return
	}
	like := slices.DeleteFunc(slices.Clone(s.entries), func(e *entry) bool { return e.wire != s.arrivals[0].Wire })
	if len(like) == 0 {
		return
	}
	s.winner = like[0]
	for _, fits := range []func(*entry) bool{
		func(e *entry) bool { return len(e.acked) > 0 },
		func(e *entry) bool { return len(e.rows) > 0 && e.letters == 0 },
		func(e *entry) bool { return len(e.rows) > 0 },
	} {
		if i := slices.IndexFunc(like, fits); i >= 0 {
			s.winner = like[i]
			return
		}
	}
}

// facts gives everything that is known of an identity. A violation is read long
// after its run, which cannot be made again exactly.
func (s *story) facts() (text string) {
	for _, o := range s.offers {
		text += "\n    " + o.String()
	}
	for i := range s.arrivals {
		text += "\n    " + s.arrivals[i].String()
	}
	for i := range s.letters {
		text += "\n    " + s.letters[i].String()
	}
	for _, e := range s.entries {
		text += fmt.Sprintf("\n    content %s looks like %s on the wire", e.sum, e.wire)
	}
	return text
}

// elsewhere gives the facts of an id at all endpoints.
func (j *judge) elsewhere(id string) (text string) {
	for _, s := range j.ids[id] {
		text += "\n  at " + s.Endpoint + ":" + s.facts()
	}
	return text
}
