package deliverycheck

import "slices"

// arrived judges what arrived of one identity (rules 1 and 4). A mix-up of endpoints
// is told apart from plain corruption, because the two have different causes in the
// product.
func (j *judge) arrived(s *story) {
	if len(s.arrivals) == 0 {
		return
	}
	for i := range s.arrivals {
		a := &s.arrivals[i]
		if a.Wire != s.arrivals[0].Wire {
			j.add(4, "%v: two contents arrived: %v and %v%s", s.Identity, &s.arrivals[0], a, s.facts())
			break
		}
	}
	switch {
	case s.winner != nil:
	case j.foreign(s):
		j.add(1, "%v: the content arrived that its id has at another endpoint%s", s.Identity, j.elsewhere(s.ID))
		return
	default:
		j.add(4, "%v: what arrived is not what was offered%s", s.Identity, s.facts())
		return
	}
	if len(s.winner.acked) > 0 || len(s.winner.rows) > 0 {
		return
	}
	j.add(4, "%v: content %s arrived, which was refused or rolled back%s", s.Identity, s.winner.sum, s.facts())
}

// foreign reports whether what arrived was offered under the same id at another
// endpoint alone. That is the mark of a store that keys messages by their id alone.
func (j *judge) foreign(s *story) bool {
	arrived := func(e *entry) bool { return e.content.Wire(s.endpoint, s.ID) == s.arrivals[0].Wire }
	return slices.ContainsFunc(j.ids[s.ID], func(other *story) bool {
		return other != s && slices.ContainsFunc(other.entries, arrived)
	})
}

// taken reports whether the endpoint took the message. A response of 503 is no
// delivery: the message is due again.
func (s *story) taken() bool {
	return slices.ContainsFunc(s.arrivals, func(a Arrival) bool { return a.good() })
}

// promised judges whether what was acknowledged over HTTP arrived (rules 2 and
// 4). Two acknowledged contents cannot both arrive, so one caller was promised what
// did not happen.
func (j *judge) promised(s *story) {
	acked := slices.DeleteFunc(slices.Clone(s.entries), func(e *entry) bool { return len(e.acked) == 0 })
	if len(acked) > 1 {
		j.add(2, "%v: %d contents were acknowledged%s", s.Identity, len(acked), s.facts())
	}
	if len(acked) > 0 && (!s.taken() || s.winner != nil && len(s.winner.acked) == 0) {
		rule := 4
		if len(j.ids[s.ID]) > 1 && len(s.arrivals) == 0 {
			rule = 1
		}
		j.add(rule, "%v: acknowledged, but it did not arrive%s", s.Identity, j.elsewhere(s.ID))
	}
}

// deadLettered judges what became of the rows of the outbox that could be sent (rules
// 2 and 4): each arrived, or is a letter. Losing rows are counted one by one, since
// each was a committed transaction of its own and none may vanish.
func (j *judge) deadLettered(s *story) {
	for i := range s.letters {
		l := &s.letters[i]
		c := l.content()
		switch e := s.entry(c.Sum()); {
		case l.Reason == "invalid" && s.spoilt(l) != nil:
		case l.Reason != "conflict":
			j.add(4, "%v: a dead letter for another reason than a conflict: %v%s", s.Identity, l, s.facts())
		case e == nil || len(e.rows) == 0:
			j.add(2, "%v: a dead letter that is no row of the outbox: %v%s", s.Identity, l, s.facts())
		}
	}
	for _, e := range s.entries {
		switch {
		case len(e.rows) == 0:
		case e != s.winner && e.letters == 0 && len(s.arrivals) == 0:
			rule := 4
			if len(j.ids[s.ID]) > 1 {
				rule = 1
			}
			j.add(rule, "%v: committed, but neither arrived nor a dead letter%s", s.Identity, j.elsewhere(s.ID))
		case e != s.winner && e.letters < len(e.rows):
			j.add(2, "%v: %d rows with content %s that lost, but %d dead letters%s", s.Identity, len(e.rows), e.sum, e.letters, s.facts())
		case e != s.winner && e.letters > len(e.rows):
			j.add(4, "%v: %d rows with content %s, but %d dead letters%s", s.Identity, len(e.rows), e.sum, e.letters, s.facts())
		case e == s.winner && e.letters > 0:
			j.add(4, "%v: content %s arrived and is a dead letter as well%s", s.Identity, e.sum, s.facts())
		}
	}
}

// spoilt returns the invalid row that the letter is, or nil. The payload decides,
// because every body of a run holds a unique token.
func (s *story) spoilt(l *Letter) *Offer {
	for _, o := range s.offers {
		if o.Invalid != "" && o.Result == Committed && o.Content.Body == string(l.Payload) {
			return o
		}
	}
	return nil
}

// invalid judges the rows that could not be sent (rule 7). Their ids are used
// once. Exactly one letter is wanted: none loses the row, and a second one would be
// redriven twice.
func (j *judge) invalid(s *story) {
	for _, o := range s.offers {
		if o.Invalid == "" {
			continue
		}
		n := 0
		for i := range s.letters {
			if s.letters[i].Reason == "invalid" && s.spoilt(&s.letters[i]) == o {
				n++
			}
		}
		switch {
		case len(s.arrivals) > 0 && len(s.entries) == 0:
			j.add(7, "%v: %s, but it arrived%s", s.Identity, o.Invalid, s.facts())
		case o.Result == Committed && n != 1:
			j.add(7, "%v: %s, and %d dead letters with its payload instead of one%s", s.Identity, o.Invalid, n, s.facts())
		case o.Result == RolledBack && len(s.letters) > 0:
			j.add(4, "%v: rolled back, but a dead letter%s", s.Identity, s.facts())
		}
	}
}

// counted judges how often a message arrived (rule 5). Failed attempts do not count:
// retrying them is the product's task.
func (j *judge) counted(s *story) {
	var last *Arrival
	for i := range s.arrivals {
		a := &s.arrivals[i]
		if !a.good() {
			continue
		}
		if last != nil {
			j.Resends++
			if !j.excused(last, a) {
				j.add(5, "%v: arrived again at %d, and no kill after %d is the cause%s", s.Identity, a.Tick, last.Tick, s.facts())
			}
		}
		last = a
	}
}

// excused reports whether a process was killed between two arrivals, and within
// a lease of the first: by then its outcome was written, or the lease lost.
// At-least-once delivery allows such a repetition and no other (rule 5).
func (j *judge) excused(first, again *Arrival) bool {
	return slices.ContainsFunc(j.ev.Kills, func(k Kill) bool {
		return first.Tick < k.Tick && k.Tick < again.Tick && k.At.Sub(first.At) < lease
	})
}
