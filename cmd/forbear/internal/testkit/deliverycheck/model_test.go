package deliverycheck

import (
	"math/rand/v2"
	"slices"
	"time"
)

// model is a delivery that keeps all rules, in memory and without time. What it
// leaves behind is evidence that must be found clean.
type model struct {
	r     *rand.Rand
	clock *Clock
	ev    *Evidence
	at    map[string]Endpoint

	accepted map[Identity]Sum
	outbox   []*Offer
	queue    []pending // accepted and not yet delivered, in the order of acceptance
}

type pending struct {
	Identity
	content *Content
}

// simulate makes traffic, some of it at the same time, and answers it.
func simulate(seed uint64, messages int) *Evidence {
	ledger, clock := &Ledger{}, &Clock{}
	t := &Traffic{Seed: seed, Messages: messages, Producers: 16, Keys: 32, Endpoints: endpoints, Ledger: ledger, Clock: clock}
	m := &model{
		r: rand.New(rand.NewPCG(seed, 3)), clock: clock, at: map[string]Endpoint{},
		ev: &Evidence{Endpoints: endpoints}, accepted: map[Identity]Sum{},
	}
	var producers []*producer
	for i := range t.Producers {
		producers = append(producers, t.producer(i))
	}
	for _, e := range endpoints {
		m.at[e.ID] = e
	}
	for t.Made() < 1 {
		m.together(producers)
		for m.r.IntN(3) > 0 && len(m.queue) > 0 {
			m.deliver()
		}
	}
	m.relay(len(m.outbox))
	for len(m.queue) > 0 {
		m.deliver()
	}
	m.ev.Offers = ledger.Offers()
	return m.ev
}

// together makes offers of a few producers that are in flight at the same time.
func (m *model) together(producers []*producer) {
	m.r.Shuffle(len(producers), func(i, k int) { producers[i], producers[k] = producers[k], producers[i] })
	var flight []*Offer
	for _, p := range producers[:1+m.r.IntN(5)] {
		begin := m.clock.Tick()
		if p.channel == HTTP {
			o := p.next()
			o.Begin, o.Last, o.Calls = begin, begin, 1
			flight = append(flight, o)
			continue
		}
		flight = append(flight, m.transaction(p, begin)...)
	}
	byTx := func(o *Offer) int { return o.Tx }
	first := m.r.IntN(2) == 0
	for _, o := range flight { // transactions before calls, or after them
		if (byTx(o) > 0) == first {
			m.answer(o)
		}
	}
	for _, o := range flight {
		if (byTx(o) > 0) != first {
			m.answer(o)
		}
	}
	m.relay(m.r.IntN(1 + len(m.outbox)))
	for _, o := range flight {
		o.End = m.clock.Tick()
	}
}

func (m *model) transaction(p *producer, begin int64) (list []*Offer) {
	result, tx := Committed, int(p.txs.Add(1))
	if p.chance(0.1) {
		result = RolledBack
	}
	for i := range 1 + m.r.IntN(4) {
		o := (*Offer)(nil)
		if p.chance(0.05) {
			o, _ = p.nextInvalid()
		} else {
			o = p.next()
		}
		o.Begin, o.Last, o.Calls, o.Result, o.Tx, o.Row = begin, begin, 1, result, tx, i
		list = append(list, o)
	}
	return list
}

// answer responds to a call; a row of the outbox waits there.
func (m *model) answer(o *Offer) {
	if o.Channel == Outbox {
		if o.Result == Committed {
			m.outbox = append(m.outbox, o)
		}
		return
	}
	o.Result = m.accept(o)
}

func (m *model) accept(o *Offer) Result {
	fresh := false
	for _, e := range o.Endpoints {
		sum, known := m.accepted[Identity{e, o.ID}]
		if known && sum != o.Sum {
			return Refused
		}
		fresh = fresh || !known
	}
	for _, e := range o.Endpoints {
		i := Identity{e, o.ID}
		if _, known := m.accepted[i]; !known {
			m.accepted[i] = o.Sum
			m.queue = append(m.queue, pending{i, &o.Content})
		}
	}
	if fresh {
		return Accepted
	}
	return Duplicate
}

// relay takes the first rows of the outbox.
func (m *model) relay(n int) {
	for _, o := range m.outbox[:n] {
		reason := "invalid"
		if o.Invalid == "" {
			if m.accept(o) != Refused {
				continue
			}
			reason = "conflict"
		}
		c := &o.Content
		m.ev.Letters = append(m.ev.Letters, Letter{
			Destination: o.Endpoints[0], EventID: o.ID, Reason: reason, Payload: []byte(c.Body), Type: c.Type, Source: c.Source,
			Subject: c.Subject, Key: c.Key, IdempotencyKey: c.IdempotencyKey, ContentType: c.ContentType, Headers: c.Headers,
		})
	}
	m.outbox = m.outbox[n:]
}

// deliver sends a random message that no earlier one of its key holds back.
func (m *model) deliver() {
	i := m.r.IntN(len(m.queue))
	d := m.queue[i]
	if m.at[d.Endpoint].Ordered && d.content.Key != "" {
		i = slices.IndexFunc(m.queue, func(q pending) bool { return q.Endpoint == d.Endpoint && q.content.Key == d.content.Key })
		d = m.queue[i]
	}
	if m.r.IntN(20) == 0 {
		m.send(d, 503) // and it waits for its retry
		return
	}
	m.send(d, 200)
	if m.r.IntN(30) == 0 {
		m.ev.Kills = append(m.ev.Kills, Kill{m.clock.Tick(), time.UnixMicro(m.clock.Tick())})
		m.send(d, 200)
	}
	m.queue = slices.Delete(m.queue, i, i+1)
}

func (m *model) send(d pending, status int) {
	m.ev.Arrivals = append(m.ev.Arrivals, Arrival{
		Tick: m.clock.Tick(), At: time.UnixMicro(m.clock.Tick()), Endpoint: d.Endpoint, Path: path(d.Endpoint), ID: d.ID, Status: status,
		Wire: d.content.Wire(m.at[d.Endpoint], d.ID), Body: d.content.Body,
	})
}
