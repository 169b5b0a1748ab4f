package deliverycheck

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
)

// Channel is the way that an offer took. Order is promised within a channel only.
type Channel string

const (
	HTTP   Channel = "http"
	Outbox Channel = "outbox"
)

// Kind says what an offer was meant to meet: how its endpoint and content
// relate to those of an earlier offer of the same id. The verdict does not use it.
// The report does, to show that each kind of collision came up.
type Kind string

const (
	Fresh          Kind = "new"             // a new id
	HereSame       Kind = "here-same"       // a repetition
	HereOther      Kind = "here-other"      // a rival
	ElsewhereSame  Kind = "elsewhere-same"  // another message with the same content
	ElsewhereOther Kind = "elsewhere-other" // another message
	Unsendable     Kind = "invalid"         // a row that can never be sent
)

// Result is what became of an offer as its producer saw it. The verdict trusts it as
// the promise that the caller was given.
type Result string

const (
	Open       Result = ""            // no response, or no end of the transaction
	Accepted   Result = "accepted"    // 202
	Duplicate  Result = "duplicate"   // 200
	Refused    Result = "refused"     // 409
	Unexpected Result = "unexpected"  // any other response
	Committed  Result = "committed"   // the row's transaction
	RolledBack Result = "rolled back" // the row's transaction
)

// Offer is one call of POST /v1/messages with all its repetitions, or one row
// of the outbox. What follows Begin is written by its producer alone, and read
// when that has ended.
//
// The zero values of End and Result mean that the caller has heard nothing yet.
type Offer struct {
	N         int // among all offers
	Producer  int
	Channel   Channel
	Kind      Kind
	Crossed   bool // the id came through the other channel before
	ID        string
	Endpoints []string
	Content   Content
	Sum       Sum    // of Content
	Invalid   string // why the row can never be sent, or ""
	Tx, Row   int    // of the outbox: the transaction, and the place in it

	Begin int64 // before the first call, or before the transaction
	Last  int64 // before the call that got the response
	End   int64 // when the response, or the commit, was there
	Calls int

	Result Result
	Status int
	Flag   bool   // "duplicate":true
	Detail string // of the response, when it is not as expected
}

// acknowledged reports whether the caller was promised a delivery. A commit is no
// acknowledgement here: its row may still lose to a rival and become a dead letter.
func (o *Offer) acknowledged() bool { return o.Result == Accepted || o.Result == Duplicate }

// standing reports whether the offer may have added something: it was neither
// refused nor rolled back, and can be sent. An open offer stands too: without a
// response its caller knows nothing, and the message may have been stored.
func (o *Offer) standing() bool {
	return o.Invalid == "" && o.Result != Refused && o.Result != RolledBack && o.Result != Unexpected
}

// String gives all facts of an offer. It is written for the report of a violation,
// where one line has to hold it all.
func (o *Offer) String() string {
	place := ""
	if o.Channel == Outbox {
		place = fmt.Sprintf(" tx %d row %d", o.Tx, o.Row)
	}
	if o.Invalid != "" {
		place += " (" + o.Invalid + ")"
	}
	response := ""
	if o.Status != 0 {
		response = fmt.Sprintf(" %d duplicate=%v after %d calls %s", o.Status, o.Flag, o.Calls, o.Detail)
	}
	return fmt.Sprintf("offer %d %s %s by %d%s at %s id %s content %s key %q begun %d last %d ended %d: %s%s; body %s",
		o.N, o.Channel, o.Kind, o.Producer, place, strings.Join(o.Endpoints, ","), o.ID, o.Sum, o.Content.Key, o.Begin, o.Last, o.End, o.Result, response, clip(o.Content.Body))
}

// Ledger holds what was offered. The zero value is empty. It is safe for
// concurrent use.
type Ledger struct {
	mu     sync.Mutex
	offers []*Offer
}

// Add enters an offer, before it is made: from now on others may collide with
// it. Adding it later would let a rival be judged against an offer that the ledger
// does not know.
func (l *Ledger) Add(o *Offer) {
	o.Sum = o.Content.Sum()
	l.mu.Lock()
	defer l.mu.Unlock()
	o.N = len(l.offers) + 1
	l.offers = append(l.offers, o)
}

// Offers returns all offers. The slice is the caller's own; the offers are shared
// and must be read only after the traffic has ended.
func (l *Ledger) Offers() []*Offer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*Offer(nil), l.offers...)
}

// recent is how many of the latest offers are taken for rivals that may still
// be in flight.
const recent = 40

// pick returns an earlier offer to collide with: one of the latest as often as
// any; one of the given channel, unless that is "". It returns nil when there
// is none. Late victims make races between processes, early ones make duplicates of
// what was long delivered. It tries 16 times before it gives up, for a ledger
// without a fitting offer must not hang a producer.
func (l *Ledger) pick(r *rand.Rand, from Channel) *Offer {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.offers)
	if n == 0 {
		return nil
	}
	for range 16 {
		i := r.IntN(n)
		if r.IntN(2) == 0 {
			i = n - 1 - r.IntN(min(n, recent))
		}
		if o := l.offers[i]; o.Invalid == "" && (from == "" || o.Channel == from) {
			return o
		}
	}
	return nil
}
