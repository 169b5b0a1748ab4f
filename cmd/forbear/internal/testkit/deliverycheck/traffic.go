package deliverycheck

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Traffic makes random offers. Most of its producers call the API; the others
// insert into the outbox, several rows at a time, which makes about as many
// offers. Each producer has keys of its own. The same seed makes the same
// choices as far as they do not depend on what others have offered meanwhile.
type Traffic struct {
	Seed      uint64
	Messages  int // how many offers to make, about
	Producers int
	Keys      int
	Endpoints []Endpoint
	Addrs     []string // of the API
	DB        *sql.DB
	Postgres  bool
	Clock     *Clock
	Ledger    *Ledger

	// Pause bounds the random waits of a producer between bursts of offers.
	Pause time.Duration
	// Hold, unless it is nil, stops the producers when four fifths of the offers
	// are made, until it is closed.
	Hold <-chan struct{}

	made   atomic.Int64
	ids    atomic.Int64
	txs    atomic.Int64
	large  atomic.Int64
	client *http.Client
}

// Made returns the part of the offers that is made.
func (t *Traffic) Made() float64 { return float64(t.made.Load()) / float64(t.Messages) }

// Run makes the offers, and returns when each has its end. An error says that
// it could not be known what became of one, and that there is nothing to judge. The
// first error stops all producers. Idle connections are closed at the end.
func (t *Traffic) Run(ctx context.Context) error {
	transport := &http.Transport{MaxIdleConnsPerHost: t.Producers}
	defer transport.CloseIdleConnections()
	t.client = &http.Client{Transport: transport, Timeout: 30 * time.Second}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, t.Producers)
	var wg sync.WaitGroup
	for i := range t.Producers {
		p := t.producer(i)
		wg.Go(func() {
			if errs[i] = p.run(ctx); errs[i] != nil {
				stop()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// producer makes offers one after another. It belongs to one goroutine; what it
// shares is in Traffic, behind atomics and the ledger's lock.
type producer struct {
	*Traffic
	n       int
	channel Channel
	r       *rand.Rand
	keys    []string
	count   map[string]int // of the messages of a key
}

// producer makes the ith producer, with its own random numbers and its share of
// the keys: the order within a key is known only when one producer makes it.
func (t *Traffic) producer(i int) *producer {
	p := &producer{Traffic: t, n: i, channel: HTTP, r: rand.New(rand.NewPCG(t.Seed, uint64(100+i))), count: map[string]int{}}
	if i%outboxEvery == 0 {
		p.channel = Outbox
	}
	for k := i; k < t.Keys; k += t.Producers {
		p.keys = append(p.keys, keyName(k))
	}
	return p
}

// run makes offers until there are enough of all producers together.
func (p *producer) run(ctx context.Context) error {
	for p.Made() < 1 {
		if p.Hold != nil && p.Made() > 0.8 {
			select {
			case <-p.Hold:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		offer := p.post
		if p.channel == Outbox {
			offer = p.insert
		}
		if err := offer(ctx); err != nil {
			return err
		}
		if p.Pause > 0 && p.chance(burstEnds) {
			time.Sleep(time.Duration(p.r.Int64N(int64(p.Pause))))
		}
	}
	return nil
}

// chance is true with probability x.
func (p *producer) chance(x float64) bool { return p.r.Float64() < x }

// The parts of the traffic.
const (
	collisions = 0.30 // of the offers: with the id of an earlier one
	crossed    = 0.25 // of the collisions: with an id of the other channel
	several    = 0.12 // of the offers: to several endpoints
	keyless    = 0.05 // of the messages
	unsendable = 0.012
	rolledBack = 0.05 // of the transactions
	maxLarge   = 3    // bodies that are too large

	outboxEvery = 4   // one producer of so many writes to the outbox
	burstEnds   = 0.2 // after each offer
)

// next chooses the next offer and enters it into the ledger. It is in the ledger
// before it is sent, so that other producers can race it.
func (p *producer) next() *Offer {
	o := &Offer{Producer: p.n, Channel: p.channel, Kind: Fresh}
	if victim := p.victim(); victim != nil {
		p.collide(o, victim)
	} else {
		o.ID = p.id()
		o.Endpoints = []string{p.endpoint("")}
		o.Content = p.content(o.ID, o.Endpoints[0])
	}
	for p.chance(several) && len(o.Endpoints) < 3 {
		if e := p.endpoint(o.Endpoints[0]); len(o.Endpoints) == 1 || e != o.Endpoints[1] {
			o.Endpoints = append(o.Endpoints, e)
		}
	}
	if p.channel == Outbox {
		o.Endpoints = o.Endpoints[:1] // a row has one
	}
	p.Ledger.Add(o)
	p.made.Add(1)
	return o
}

// victim returns the earlier offer to collide with, or nil. None is available at the
// start of a run, which only means a few more fresh ids.
func (p *producer) victim() *Offer {
	if !p.chance(collisions) {
		return nil
	}
	from := Channel("")
	if p.chance(crossed) {
		if from = HTTP; p.channel == HTTP {
			from = Outbox
		}
	}
	return p.Ledger.pick(p.r, from)
}

// collide makes o an offer with the id of another. The four kinds are equally
// likely. They are the whole table of same and other endpoint by same and other
// content.
func (p *producer) collide(o, victim *Offer) {
	o.ID, o.Crossed = victim.ID, victim.Channel != o.Channel
	there := victim.Endpoints[p.r.IntN(len(victim.Endpoints))]
	switch p.r.IntN(4) {
	case 0:
		o.Kind, o.Endpoints, o.Content = HereSame, []string{there}, victim.Content
		if p.chance(0.5) {
			o.Endpoints = append([]string(nil), victim.Endpoints...)
		}
	case 1:
		o.Kind, o.Endpoints, o.Content = HereOther, []string{there}, p.rival(victim, there)
	case 2:
		o.Kind, o.Endpoints, o.Content = ElsewhereSame, []string{p.endpoint(there)}, victim.Content
	default:
		o.Kind, o.Endpoints = ElsewhereOther, []string{p.endpoint(there)}
		o.Content = p.rival(victim, o.Endpoints[0])
	}
}

// endpoint chooses an endpoint other than the given one.
func (p *producer) endpoint(but string) string {
	for {
		if e := p.Endpoints[p.r.IntN(len(p.Endpoints))].ID; e != but {
			return e
		}
	}
}
