package deliverycheck

import "slices"

// What the planting of faults needs.

func (ev *Evidence) endpoint(id string) Endpoint {
	return ev.Endpoints[slices.IndexFunc(ev.Endpoints, func(e Endpoint) bool { return e.ID == id })]
}

func (ev *Evidence) now() int64 {
	return ev.Arrivals[len(ev.Arrivals)-1].Tick + int64(len(ev.Kills)) + 1000
}

// each calls f with each arrival and an offer of its identity and content, until
// f returns true.
func (ev *Evidence) each(f func(*Arrival, *Offer) bool) bool {
	offers := map[Identity][]*Offer{}
	for _, o := range ev.Offers {
		for _, e := range o.Endpoints {
			i := Identity{e, o.ID}
			offers[i] = append(offers[i], o)
		}
	}
	for i := range ev.Arrivals {
		a := &ev.Arrivals[i]
		for _, o := range offers[Identity{a.Endpoint, a.ID}] {
			if o.Content.Wire(ev.endpoint(a.Endpoint), a.ID) == a.Wire && f(a, o) {
				return true
			}
		}
	}
	return false
}

// only reports whether an offer has one endpoint, and whether there is no other
// offer of its identity.
func (ev *Evidence) only(o *Offer) bool {
	return len(o.Endpoints) == 1 && !slices.ContainsFunc(ev.Offers, func(p *Offer) bool {
		return p != o && p.ID == o.ID && slices.Contains(p.Endpoints, o.Endpoints[0])
	})
}

// alone reports whether nothing else was offered under the id of an offer.
func (ev *Evidence) alone(o *Offer) bool {
	return len(o.Endpoints) == 1 && !slices.ContainsFunc(ev.Offers, func(p *Offer) bool { return p != o && p.ID == o.ID })
}

// lateRival adds a row with another content of the same identity, which was
// refused as it has to be.
func (ev *Evidence) lateRival(o *Offer) bool {
	r := &Offer{
		N: len(ev.Offers) + 1, Channel: Outbox, Kind: HereOther, ID: o.ID, Endpoints: o.Endpoints[:1], Content: Content{Body: "rival"},
		Tx: 1_000_000, Begin: o.Begin, Last: o.Begin, End: o.End, Result: Committed, Calls: 1,
	}
	r.Sum = r.Content.Sum()
	ev.Offers = append(ev.Offers, r)
	return ev.bury(r, "conflict")
}

func (ev *Evidence) arrivedBefore(o *Offer) bool {
	for _, e := range o.Endpoints {
		if !slices.ContainsFunc(ev.Arrivals, func(a Arrival) bool { return a.ID == o.ID && a.Endpoint == e && a.Tick < o.Last }) {
			return false
		}
	}
	return true
}

// turn changes the result of the first offer with the given one.
func (ev *Evidence) turn(from, to Result, fits func(*Offer) bool) bool {
	for _, o := range ev.Offers {
		if o.Channel == HTTP && o.Result == from && (fits == nil || fits(o)) {
			o.Result = to
			return true
		}
	}
	return false
}

func (ev *Evidence) edit(endpoint, id string, f func(*Arrival)) bool {
	for i := range ev.Arrivals {
		if a := &ev.Arrivals[i]; a.Endpoint == endpoint && a.ID == id {
			f(a)
		}
	}
	return true
}

func (ev *Evidence) lose(a *Arrival) bool {
	lost := Identity{a.Endpoint, a.ID}
	ev.Arrivals = slices.DeleteFunc(ev.Arrivals, func(a Arrival) bool { return Identity{a.Endpoint, a.ID} == lost })
	return true
}

// send adds the arrival of an offer at its last endpoint.
func (ev *Evidence) send(o *Offer) {
	e := o.Endpoints[len(o.Endpoints)-1]
	at := Endpoint{ID: e}
	if e != "nowhere" {
		at = ev.endpoint(e)
	}
	ev.Arrivals = append(ev.Arrivals, Arrival{Tick: ev.now(), Endpoint: e, Path: path(e), ID: o.ID, Status: 200, Wire: o.Content.Wire(at, o.ID)})
}

// deliver sends something that must not be sent, at an endpoint where nothing
// arrived.
func (ev *Evidence) deliver(what Result) bool {
	for _, o := range ev.Offers {
		e := o.Endpoints[len(o.Endpoints)-1]
		arrived := slices.ContainsFunc(ev.Arrivals, func(a Arrival) bool { return a.ID == o.ID && a.Endpoint == e })
		if o.Result == what && o.Invalid == "" && !arrived {
			ev.send(o)
			return true
		}
	}
	return false
}

func (ev *Evidence) bury(o *Offer, reason string) bool {
	c := &o.Content
	ev.Letters = append(ev.Letters, Letter{
		Destination: o.Endpoints[0], EventID: o.ID, Reason: reason, Payload: []byte(c.Body), Type: c.Type, Source: c.Source, Subject: c.Subject,
		Key: c.Key, IdempotencyKey: c.IdempotencyKey, ContentType: c.ContentType, Headers: c.Headers,
	})
	return true
}

func (ev *Evidence) drop(reason string) bool {
	i := slices.IndexFunc(ev.Letters, func(l Letter) bool { return l.Reason == reason })
	ev.Letters = slices.Delete(ev.Letters, i, i+1)
	return true
}

func (ev *Evidence) spoil(reason string) bool {
	i := slices.IndexFunc(ev.Letters, func(l Letter) bool { return l.Reason == reason })
	ev.Letters[i].Payload = append(slices.Clone(ev.Letters[i].Payload), '!')
	return true
}

// again adds one more arrival of what arrived, at the given place.
func (ev *Evidence) again(i, place int) {
	a := ev.Arrivals[i]
	if a.Tick, a.Status = a.Tick+1, 200; place == len(ev.Arrivals) {
		a.Tick = ev.now() + 10
	}
	ev.Arrivals[i].Status = 200
	ev.Arrivals = slices.Insert(ev.Arrivals, place, a)
}

// swap exchanges two messages of a key that arrived once each, one after the
// other: rows of one transaction, or offers of different calls.
func (ev *Evidence) swap(transaction bool) bool {
	times := map[Identity]int{}
	for _, a := range ev.Arrivals {
		times[Identity{a.Endpoint, a.ID}]++
	}
	once := func(a *Arrival, o *Offer) bool {
		return ev.endpoint(a.Endpoint).Ordered && times[Identity{a.Endpoint, a.ID}] == 1 && ev.only(o) && o.Content.Key != ""
	}
	return ev.each(func(a *Arrival, o *Offer) bool {
		return once(a, o) && ev.each(func(b *Arrival, p *Offer) bool {
			together := o.Tx > 0 && o.Tx == p.Tx && o.Row < p.Row
			apart := o.Tx == 0 && p.Tx == 0 && o.End < p.Last
			if !once(b, p) || a.Endpoint != b.Endpoint || o.Content.Key != p.Content.Key || transaction && !together || !transaction && !apart {
				return false
			}
			a.ID, b.ID, a.Wire, b.Wire = b.ID, a.ID, b.Wire, a.Wire
			return true
		})
	})
}
