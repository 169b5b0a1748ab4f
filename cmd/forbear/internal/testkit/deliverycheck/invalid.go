package deliverycheck

import "strings"

// tooLarge is a body above the 256 KiB that a message may have.
const tooLarge = 256<<10 + 1

// fault is a way in which a row of the outbox can be beyond sending. Each one is a
// mistake that a real application makes. None may stop the rows behind it (rule 7).
type fault struct {
	name string
	// spoil makes a good row bad.
	spoil func(o *Offer, r row)
}

// faults are those that every database lets in. A reader of a report sees the name,
// so it says what is wrong with the row.
var faults = []fault{
	{"unknown endpoint", func(o *Offer, r row) { o.Endpoints = []string{"nowhere"}; r["endpoint"] = "nowhere" }},
	{"headers are an object", func(_ *Offer, r row) { r["headers"] = `{"X-Check-A":"a"}` }},
	{"headers are no JSON", func(_ *Offer, r row) { r["headers"] = "X-Check-A: a" }},
	{"type is too long", func(_ *Offer, r row) { r["type"] = strings.Repeat("t", 300) }},
	{"control characters", func(_ *Offer, r row) { r["subject"] = "a\x01b\r\nc" }},
}

// foreign are faults that only a database without strict types lets in. On
// PostgreSQL the insert itself fails, and no row is left to judge.
var foreign = []fault{
	{"a blob for the type", func(_ *Offer, r row) { r["type"] = []byte{0x00, 0x01, 0xff} }},
	{"a blob for the subject, no UTF-8", func(_ *Offer, r row) { r["subject"] = []byte{0x80, 0xfe, 0xff} }},
}

// large is apart: a few of its rows are enough.
var large = fault{"body is too large", func(o *Offer, r row) {
	o.Content.Body += strings.Repeat(" ", tooLarge)
	r["body"] = []byte(o.Content.Body)
}}

// nextInvalid chooses a row that can never be sent. Its id is new and used once: a
// victim that cannot be sent would make the verdict of its rivals ambiguous.
func (p *producer) nextInvalid() (*Offer, row) {
	o := &Offer{Producer: p.n, Channel: Outbox, Kind: Unsendable, ID: p.id(), Endpoints: []string{p.endpoint("")}}
	o.Content = p.content(o.ID, o.Endpoints[0])
	list := faults
	if !p.Postgres {
		list = append(list[:len(list):len(list)], foreign...)
	}
	f := list[p.r.IntN(len(list))]
	if p.chance(0.1) && p.large.Add(1) <= maxLarge {
		f = large
	}
	r := o.row()
	f.spoil(o, r)
	o.Invalid = f.name
	p.Ledger.Add(o)
	p.made.Add(1)
	return o, r
}
