package deliverycheck

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// link is a message in the line of its key. Accepted says when that may have
// happened: after early and before late. Acceptance itself is invisible from
// outside, hence the interval instead of a moment.
type link struct {
	*story
	early, late int64
	tx, row     int   // of the outbox, when it was one row alone
	first, last int64 // arrivals, failed attempts included
	good        int64 // the first that got 2xx
}

// line is the messages of one key at one endpoint that came through one channel.
// Channels are apart, because nothing orders a call against a transaction of another
// connection.
type line struct {
	endpoint, key string
	channel       Channel
}

// ordered judges the order of the messages of each key (rule 6). A message that
// may have been accepted through either channel belongs to no line. Those left out
// are counted in the report, so that a run that judges too few of them shows.
func (j *judge) ordered(list []*story) {
	lines := map[line][]*link{}
	for _, s := range list {
		if !s.endpoint.Ordered || s.winner == nil || s.winner.content.Key == "" {
			continue
		}
		if l, channel, ok := s.link(); ok {
			at := line{s.Endpoint, s.winner.content.Key, channel}
			lines[at] = append(lines[at], l)
			j.Ordered++
		} else {
			j.Unjudged++
		}
	}
	for _, at := range sorted(lines) {
		j.sweep(at, lines[at])
		j.transactions(at, lines[at])
	}
}

// sorted puts the lines in order, so that reports of one run can be compared.
func sorted(lines map[line][]*link) []line {
	return slices.SortedFunc(maps.Keys(lines), func(a, b line) int {
		return cmp.Or(cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.key, b.key), cmp.Compare(a.channel, b.channel))
	})
}

// link finds out when the message may have been accepted. It reports false when
// that may have happened through either channel, or cannot be said. An uncertain
// case is left out rather than guessed: a false violation costs days of search.
func (s *story) link() (l *link, channel Channel, ok bool) {
	l = &link{story: s, early: math.MaxInt64, first: s.arrivals[0].Tick, last: s.arrivals[len(s.arrivals)-1].Tick, good: math.MaxInt64}
	if i := slices.IndexFunc(s.arrivals, func(a Arrival) bool { return a.good() }); i >= 0 {
		l.good = s.arrivals[i].Tick
	}
	for n, o := range s.candidates() {
		begin := o.Begin
		if o.Result == Accepted {
			begin = o.Last // an earlier call that had added it would have made this one a duplicate
		}
		if n > 0 && o.Channel != channel {
			return nil, "", false
		}
		channel, ok = o.Channel, true
		l.early, l.late = min(l.early, begin), max(l.late, o.End)
		if l.tx, l.row = o.Tx, o.Row; n > 0 {
			l.tx = 0
		}
	}
	return l, channel, ok
}

// candidates returns the offers that may have been the one that was accepted. Offers
// that began after the content was known to be stored are not among them: they can
// only have been duplicates.
func (s *story) candidates() (list []*Offer) {
	known := s.arrivals[0].Tick
	for _, o := range s.winner.acked {
		if o.Result == Accepted && len(o.Endpoints) == 1 {
			return []*Offer{o}
		}
		known = min(known, o.End)
	}
	for _, o := range s.winner.acked {
		if o.Begin <= known && (o.Result == Accepted || o.Calls > 1) {
			list = append(list, o)
		}
	}
	for _, o := range s.winner.rows {
		if o.Begin <= known {
			list = append(list, o)
		}
	}
	return list
}

// sweep demands that all that was accepted before a message was offered is done
// with before that message is first sent. Comparing every pair would be quadratic.
// It is enough to hold each message against the latest of those before it: by first
// 2xx and by last arrival.
func (j *judge) sweep(at line, links []*link) {
	byLate := slices.SortedFunc(slices.Values(links), func(a, b *link) int { return cmp.Compare(a.late, b.late) })
	byEarly := slices.SortedFunc(slices.Values(links), func(a, b *link) int { return cmp.Compare(a.early, b.early) })
	var lastSent, lastGood *link // of those before
	for _, m := range byEarly {
		for len(byLate) > 0 && byLate[0].late < m.early {
			n := byLate[0]
			if byLate = byLate[1:]; lastSent == nil || n.last > lastSent.last {
				lastSent = n
			}
			if lastGood == nil || n.good > lastGood.good {
				lastGood = n
			}
		}
		if lastGood != nil {
			j.pair(at, lastGood, m)
		}
		if lastSent != nil && lastSent != lastGood {
			j.pair(at, lastSent, m)
		}
	}
}

// transactions demands the order of the inserts within a transaction. The sweep
// cannot see it: rows of one transaction have the same interval.
func (j *judge) transactions(at line, links []*link) {
	rows := slices.DeleteFunc(slices.Clone(links), func(l *link) bool { return l.tx == 0 })
	slices.SortFunc(rows, func(a, b *link) int { return cmp.Or(cmp.Compare(a.tx, b.tx), cmp.Compare(a.row, b.row)) })
	for i := 1; i < len(rows); i++ {
		if n, m := rows[i-1], rows[i]; n.tx == m.tx {
			j.pair(at, n, m)
		}
	}
}

// pair judges two messages of which n has to be first. The two cases are different
// faults: an order that was not kept, and a repetition behind the order's back.
func (j *judge) pair(at line, n, m *link) {
	switch {
	case n.good > m.first:
		j.add(6, "%s at %s through %s: %v was sent before %v got its 2xx\n  first:%s\n  then:%s", at.key, at.endpoint, at.channel, m.Identity, n.Identity, n.facts(), m.facts())
	case n.last > m.first:
		j.add(6, "%s at %s through %s: %v was sent again after %v\n  first:%s\n  then:%s", at.key, at.endpoint, at.channel, n.Identity, m.Identity, n.facts(), m.facts())
	}
}
