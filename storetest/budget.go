package storetest

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear/budget"
)

// RunBudget holds a [budget.Store] to its documented contract. open returns
// an empty store, and the test cleans it up.
//
// The suite follows the store's own clock, since Redis keeps the time of a
// shared budget itself: it cannot run in a synctest bubble and takes about
// eight seconds.
func RunBudget(t *testing.T, open func(t *testing.T) budget.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *budgetCase)
	}{
		// Each case gets a store of its own, and a window long enough that
		// no slot leaves it by chance.
		{"books what is new, once", testBudgetBooks},
		{"learns the window of an unknown instance", testBudgetLearns},
		{"takes back refunds", testBudgetRefunds},
		{"grants within the limit", testBudgetGrants},
		{"grants nothing while it is young", testBudgetYoung},
		{"counts the holds of the lost as spent", testBudgetLost},
		{"keeps keys apart", testBudgetKeys},
		{"syncs atomically", testBudgetAtomic},
		{"lets the window roll", testBudgetRolls},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, &budgetCase{t, open(t), "payments", 30 * time.Second}) })
	}
}

// budgetCase is one store under test with the key and the window that its
// reports use. Tests that need another key or window copy or change it.
type budgetCase struct {
	t      *testing.T
	store  budget.Store
	key    string
	window time.Duration
}

// A test waits for the short lease to end, and finishes well before the long
// one does, which has to pass before a store grants. Both leave room for a slow
// machine: nothing here measures how fast a store responds.
const (
	budgetLease     = 300 * time.Millisecond
	longBudgetLease = 3 * time.Second
)

// sync sends one report under a lease that no test outlives, unless s names
// another.
func (b *budgetCase) sync(s budget.Report) budget.Reading {
	b.t.Helper()
	s.Lease = cmp.Or(s.Lease, lease)
	return must(b.store.Sync(b.t.Context(), b.key, b.window, s))(b.t)
}

// report sends totals, all of them in the newest slot, and asks for no
// hold.
func (b *budgetCase) report(id string, initial, retries int64) budget.Reading {
	b.t.Helper()
	u := budget.Usage{Initial: initial, Retries: retries}
	return b.sync(budget.Report{Instance: id, Total: u, Recent: []budget.Usage{u}})
}

// want compares a whole reading. A store that gets one figure wrong often
// gets a second wrong to match, so that comparing fields one by one would
// hide it.
func (b *budgetCase) want(got budget.Reading, initial, retries, held, granted int64, instances int) {
	b.t.Helper()
	want := budget.Reading{Usage: budget.Usage{Initial: initial, Retries: retries}, Held: held, Granted: granted, Instances: instances}
	if got != want {
		b.t.Errorf("got %+v, want %+v", got, want)
	}
}

// An instance reports running totals, never differences. A repeated report
// therefore adds nothing, which is what makes it safe to send one again when
// its response was lost.
func testBudgetBooks(_ *testing.T, b *budgetCase) {
	b.want(b.report("a", 10, 1), 10, 1, 0, 0, 1)
	b.want(b.report("a", 10, 1), 10, 1, 0, 0, 1) // the response to the first was lost
	// Only the growth since the last report is added.
	b.want(b.report("a", 15, 3), 15, 3, 0, 0, 1)
	b.want(b.report("b", 100, 0), 115, 3, 0, 0, 2)
	// Only what lies in the window counts: the rest of the growth is too old.
	b.want(b.sync(budget.Report{
		Instance: "a", Total: budget.Usage{Initial: 1000, Retries: 500},
		Recent: []budget.Usage{{Initial: 1, Retries: 1}, {}, {Initial: 4, Retries: 2}},
	}), 120, 6, 0, 0, 2)
}

// A store that has lost its data, or has never met the instance, takes the
// whole window from Recent. The totals since the start of the process would
// be far too much.
func testBudgetLearns(_ *testing.T, b *budgetCase) {
	// Ten seconds short of the window, so that none of it lies at the edge
	// while the test runs.
	recent := make([]budget.Usage, 20)
	for i := range recent {
		recent[i] = budget.Usage{Initial: 10, Retries: 2}
	}
	total := budget.Usage{Initial: 5000, Retries: 900}
	s := budget.Report{Instance: "a", Total: total, Recent: recent}
	b.want(b.sync(s), 200, 40, 0, 0, 1)
	b.want(b.sync(s), 200, 40, 0, 0, 1)
}

// A retry that was counted and then not made comes back as a lower total.
// Reports after that count from the lower total.
func testBudgetRefunds(_ *testing.T, b *budgetCase) {
	b.report("a", 10, 4)
	b.want(b.report("a", 10, 1), 10, 1, 0, 0, 1)
	// After a refund the next retry counts from the lower figure.
	b.want(b.report("a", 10, 2), 10, 2, 0, 0, 1)
}

// old makes a budget old enough to grant under a lease: a young one may not
// have heard from all its instances yet.
func (b *budgetCase) old(lease time.Duration) {
	b.report("old", 0, 0)
	time.Sleep(lease + 50*time.Millisecond)
	b.sync(budget.Report{Instance: "old", Leave: true})
}

// The sum of all holds never exceeds the limit, and what one instance gives
// back is there for the next that asks. A hold once granted stays even when
// the limit falls below it: the instance may already have spent it.
func testBudgetGrants(_ *testing.T, b *budgetCase) {
	b.old(longBudgetLease)
	// The calls below are one history: each figure follows from the ones
	// before it.
	ask := func(id string, hold, want, limit int64) budget.Reading {
		return b.sync(budget.Report{Instance: id, Hold: hold, Want: want, Limit: limit, Lease: longBudgetLease})
	}
	b.want(ask("a", 0, 6, 10), 0, 0, 6, 6, 1)
	b.want(ask("b", 0, 6, 10), 0, 0, 10, 4, 2)
	b.want(ask("c", 0, 6, 10), 0, 0, 10, 0, 3)
	b.want(ask("a", 2, 2, 10), 0, 0, 6, 2, 3)  // gives back four
	b.want(ask("c", 0, 6, 10), 0, 0, 10, 4, 3) // which are there for others
	b.want(ask("b", 4, 9, 5), 0, 0, 10, 4, 3)  // a hold is kept under any limit
	// An instance that spends its hold reports the retries: they move from
	// held to spent, and free no room.
	one := budget.Usage{Retries: 2}
	b.want(b.sync(budget.Report{Instance: "a", Total: one, Recent: []budget.Usage{one}, Want: 6, Limit: 10, Lease: longBudgetLease}), 0, 2, 8, 0, 3)
	b.want(b.sync(budget.Report{Instance: "b", Leave: true}), 0, 2, 4, 0, 2)
}

// A store that has just restarted does not know what others hold. Until one
// lease has passed it confirms holds and grants no new ones.
func testBudgetYoung(_ *testing.T, b *budgetCase) {
	b.want(b.sync(budget.Report{Instance: "a", Hold: 2, Want: 9, Limit: 10, Lease: longBudgetLease}), 0, 0, 2, 2, 1)
}

// An instance that vanishes may have spent its whole hold, so that the hold
// counts as spent once the lease ends. The cautious reading costs some
// retries; the other one would break the limit.
func testBudgetLost(_ *testing.T, b *budgetCase) {
	b.old(budgetLease)
	u := budget.Usage{Initial: 10}
	b.want(b.sync(budget.Report{Instance: "a", Total: u, Recent: []budget.Usage{u}, Want: 2, Limit: 2, Lease: budgetLease}), 10, 0, 2, 2, 1)
	// Past the lease by the store's clock, which may differ a little from
	// this one's.
	time.Sleep(budgetLease + 50*time.Millisecond)
	b.want(b.report("b", 0, 0), 10, 2, 0, 0, 1)
	b.want(b.report("a", 11, 0), 11, 2, 0, 0, 2) // known still: ten are not booked again
}

// Two dependencies share nothing, even when an instance has the same id in
// both.
func testBudgetKeys(_ *testing.T, b *budgetCase) {
	b.report("a", 10, 1)
	// The same instance id under another key is a stranger there.
	other := *b
	other.key = "search"
	other.want(other.report("a", 3, 0), 3, 0, 0, 0, 1)
	b.want(b.report("a", 10, 1), 10, 1, 0, 0, 1)
}

// Twenty instances ask at the same time for more than there is. Reading the
// sums and granting have to be one step in the store: a check and a later
// write would together exceed the limit.
func testBudgetAtomic(t *testing.T, b *budgetCase) {
	b.old(longBudgetLease)
	granted := make([]int64, 20)
	parallel(len(granted), func(i int) {
		// Each round confirms what the instance holds and asks for
		// one more, as a process under load does.
		for n := range int64(20) {
			u := budget.Usage{Initial: n + 1}
			f, err := b.store.Sync(t.Context(), b.key, b.window, budget.Report{
				Instance: string(rune('a' + i)), Total: u, Recent: []budget.Usage{u}, Hold: granted[i], Want: granted[i] + 1, Limit: 100, Lease: longBudgetLease,
			})
			if err != nil {
				t.Error(err)
				return
			}
			granted[i] = f.Granted
		}
	})
	var sum int64
	for _, n := range granted {
		sum += n
	}
	// There was demand for more, so that less than the limit is a fault
	// too.
	if sum != 100 {
		t.Errorf("granted %d in all, want the limit of 100", sum)
	}
	if f := b.report("z", 0, 0); f.Initial != 400 || f.Held != 100 || f.Instances != 21 {
		t.Errorf("got %+v, want 400 requests, 100 held by 21", f)
	}
}

// Old slots leave the window one by one. The second assertion is loose, since
// the edge of a slot may fall anywhere within the test's steps.
func testBudgetRolls(t *testing.T, b *budgetCase) {
	// A short window rolls within the test. A machine that is too busy for its
	// first part gets a longer one.
	for b.window = 600 * time.Millisecond; ; b.window *= 2 {
		b.key = fmt.Sprint("rolls in ", b.window)
		began := time.Now()
		b.report("a", 10, 2)
		time.Sleep(b.window / 3)
		f := b.report("a", 15, 3)
		if time.Since(began) < b.window*9/10 {
			b.want(f, 15, 3, 0, 0, 1)
			break
		}
	}
	time.Sleep(b.window * 5 / 6)
	if f := b.report("a", 15, 3); f.Initial > 5 || f.Retries > 1 {
		t.Errorf("after 7/6 of a window: %+v", f)
	}
	time.Sleep(b.window / 2)
	b.want(b.report("a", 15, 3), 0, 0, 0, 0, 1)
}
