package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook/store"
)

// tallyEvery is how often what was counted is stored: that is how late any process
// knows of it, and what a killed one takes along.
const tallyEvery = 10 * time.Second

// tallies has the counts of this process's attempts for the store, by endpoint: a write
// for each would double what a delivery costs. A row of the store has the count of a
// whole slot, so that writing it again adds nothing. The ledger's lock guards them.
type tallies struct {
	open map[string]*store.Tally // of the present slot
	// dirty are those that the store does not have as they are.
	dirty map[*store.Tally]bool
}

// count counts an attempt.
func (l *ledger) count(endpoint string, a *deadletter.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open, l.dirty = map[string]*store.Tally{}, map[*store.Tally]bool{}
	}
	t, slot := l.open[endpoint], store.SlotOf(a.At)
	if t == nil || t.Slot != slot {
		t = &store.Tally{Endpoint: endpoint, Slot: slot}
		l.open[endpoint] = t
	}
	t.Add(a.Status, a.Took)
	l.dirty[t] = true
}

// counted returns copies of what is to be stored, and forgets what is over.
func (l *ledger) counted(now time.Time) (list []store.Tally, of []*store.Tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.dirty {
		list, of = append(list, *t), append(of, t)
	}
	clear(l.dirty)
	for id, t := range l.open {
		if t.Slot < store.SlotOf(now) {
			delete(l.open, id)
		}
	}
	return list, of
}

// countAgain marks what could not be stored.
func (l *ledger) countAgain(of []*store.Tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range of {
		l.dirty[t] = true
	}
}

// storeTallies stores what was counted since the last time.
func (d *Dispatcher) storeTallies(ctx context.Context) {
	list, of := d.ledger.counted(d.now())
	for len(list) > 0 {
		n := min(len(list), storeBatch)
		if !d.do(ctx, partCounts, "counts of attempts not stored", func() error { return d.cfg.Store.PutTallies(ctx, d.cfg.Owner, list[:n]) }) {
			d.ledger.countAgain(of)
			return
		}
		list, of = list[n:], of[n:]
	}
}
