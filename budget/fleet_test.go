package budget_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
)

var errNoStore = errors.New("connection refused")

// fleet is a number of instances in a synctest bubble, and an exact record of
// what they sent.
type fleet struct {
	store     *memstore.Budget
	instances []*budget.Fleet
	initial   []time.Time
	retries   []time.Time
	// The latest outage of the store; it lasts while ended is zero.
	began, ended time.Time
}

// down begins or ends an outage of the store.
func (f *fleet) down(down bool) {
	if !down {
		f.store.Fail(nil)
		f.ended = time.Now()
		return
	}
	// One that begins while the last still counts prolongs it.
	if f.began.IsZero() || time.Since(f.ended) > 30*time.Second+2*fleetLease {
		f.began = time.Now()
	}
	f.ended = time.Time{}
	f.store.Fail(errNoStore)
}

func newFleet(t *testing.T, n int, opts budget.FleetOptions) *fleet {
	f := &fleet{store: &memstore.Budget{}}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	for range n {
		b, err := budget.NewFleet(budget.Policy{}, f.store, "payments", opts)
		if err != nil {
			t.Fatal(err)
		}
		f.instances = append(f.instances, b)
		t.Cleanup(func() { _ = b.Close() })
	}
	return f
}

// request makes one call of instance i that asks for the given number of
// retries.
func (f *fleet) request(i, retries int) (granted int) {
	now := time.Now()
	f.initial = append(f.initial, now)
	f.instances[i].Request(now)
	for range retries {
		if f.instances[i].Spend(now, budget.Transient) {
			f.retries = append(f.retries, now)
			granted++
		}
	}
	return granted
}

// within counts the times in (from, to], of times in order.
func within(times []time.Time, from, to time.Time) int {
	after := func(limit time.Time) int {
		return sort.Search(len(times), func(i int) bool { return times[i].After(limit) })
	}
	return after(to) - after(from)
}

const fleetLease = 1100 * time.Millisecond // four times 250 ms, and 100 ms

// The fleet may overstep its ratio by what left the window during one lease; and
// across an outage by what left it since that began, since each instance alone
// cannot see the fleet's requests grow old.
func (f *fleet) check(t *testing.T) {
	t.Helper()
	const window, slot, floor = 30 * time.Second, time.Second, 3
	now := time.Now()
	used := within(f.retries, now.Add(-window), now)
	// Up to two slots of delay: a request is booked in the slot of its age,
	// the slots of the instances and of the store are cut at other times.
	from := now.Add(-window - fleetLease - 2*slot)
	if !f.began.IsZero() && (f.ended.IsZero() || now.Sub(f.ended) <= window+2*fleetLease) {
		if before := f.began.Add(-window - fleetLease - 2*slot); before.Before(from) {
			from = before
		}
	}
	initial := within(f.initial, from, now)
	if allowed := max(initial/5, floor); used > allowed {
		t.Fatalf("%d retries in the window of %d initial requests: more than %d", used, initial, allowed)
	}
}

func TestFleetBudgetIsSharedByAll(t *testing.T) {
	for _, n := range []int{1, 3, ringtest.Size(20, 200)} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, n, budget.FleetOptions{})
			for range 600 { // a dead dependency, for a minute
				for range 20 {
					f.request(rand.IntN(n), 3)
				}
				f.check(t)
				time.Sleep(100 * time.Millisecond)
			}
			ratio := float64(len(f.retries)) / float64(len(f.initial))
			t.Logf("%d instances: %.3f", n, ratio)
			if ratio > 0.20 || ratio < 0.15 {
				t.Errorf("%d instances retried %.3f of their requests, want a little under 0.20", n, ratio)
			}
		})
	}
}

// What the others earn and do not need is there for the one that does.
func TestFleetBudgetLendsToTheNeedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10, budget.FleetOptions{})
		granted, own := 0, 0
		for range 400 {
			for i := range 10 {
				failing := 0
				if i == 0 {
					failing, own = 1, own+1
				}
				granted += f.request(i, failing)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if granted < own*9/10 {
			t.Errorf("one instance in ten was granted %d retries of %d; the fleet has 20 %% and it asks for 10 %%", granted, own)
		}
	})
}

// However many quiet instances share one floor of three.
func TestFleetBudgetFloorIsTheFleets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, ringtest.Size(50, 200), budget.FleetOptions{})
		time.Sleep(5 * time.Second)
		granted := 0
		for range 20 {
			for i := range f.instances {
				for range 3 {
					if f.instances[i].Spend(time.Now(), budget.Transient) {
						granted++
					}
				}
			}
			time.Sleep(time.Second)
		}
		if granted != 3 {
			t.Errorf("granted %d in one window without requests, want the fleet's floor of 3", granted)
		}
	})
}

func TestFleetBudgetStrictHasNoFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, budget.FleetOptions{Strict: true})
		for range 100 {
			if f.instances[0].Spend(time.Now(), budget.Transient) {
				t.Fatal("granted a retry without a request")
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

func TestFleetBudgetRefund(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, budget.FleetOptions{})
		f.instances[0].Refund(time.Now(), budget.Transient) // nothing to give back
		time.Sleep(5 * time.Second)
		for range 50 {
			for i := range f.instances {
				for f.instances[i].Spend(time.Now(), budget.Transient) {
					f.instances[i].Refund(time.Now(), budget.Transient)
					time.Sleep(400 * time.Millisecond)
					break
				}
			}
		}
		time.Sleep(time.Second)
		if l := f.instances[1].Level(time.Now()); l.Used != 0 || l.Allowed != 3 {
			t.Errorf("after refunds the level is %+v, want 0 of 3", l)
		}
	})
}

// Random traffic, crowds, outages and losses of the store: the bound holds at
// every moment.
func TestFleetBudgetNeverOverspends(t *testing.T) {
	for seed := range ringtest.Size(uint64(2), 10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				n := 1 + rng.IntN(40)
				f := newFleet(t, n, budget.FleetOptions{})
				crowd, failing, down := 1, 0, false
				for step := range 1200 {
					if step%50 == 0 {
						crowd, failing = rng.IntN(30), rng.IntN(4)
					}
					if rng.IntN(80) == 0 {
						down = !down
						f.down(down)
					}
					if rng.IntN(300) == 0 {
						f.store.Clear()
					}
					for range rng.IntN(crowd + 1) {
						// A few instances have most of the traffic, others
						// most of the failures.
						f.request(min(rng.IntN(n), rng.IntN(n)), failing)
						i := rng.IntN(n)
						if failing > 0 && f.instances[i].Spend(time.Now(), budget.Transient) {
							f.retries = append(f.retries, time.Now())
						}
					}
					f.check(t)
					time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
				}
				t.Logf("%d instances, %d requests, %d retries", n, len(f.initial), len(f.retries))
			})
		})
	}
}

func TestFleetBudgetWithoutItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFleet(t, 2, budget.FleetOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(3 * time.Second)
		f.store.Fail(errNoStore)
		for range 2 {
			time.Sleep(5 * time.Second)
			if f.instances[0].Spend(time.Now(), budget.Transient) {
				t.Error("granted a retry on a floor that only the fleet has")
			}
		}
		granted := 0
		for range 500 {
			granted += f.request(0, 1)
			time.Sleep(20 * time.Millisecond)
		}
		if granted < 95 || granted > 100 {
			t.Errorf("on its own: %d retries for 500 requests, want just 20 %%", granted)
		}
		if s := f.instances[0].Stats(); !s.Local || s.Outages != 1 || s.Failed < 50 {
			t.Errorf("in the outage: %+v", s)
		}
		if l := f.instances[0].Level(time.Now()); l.Used != float64(granted) || l.Allowed != 100 {
			t.Errorf("in the outage the level is %+v, want its own, %d of 100", l, granted)
		}
		f.store.Fail(nil)
		time.Sleep(time.Second)
		// What the two held when the store went away counts as spent.
		s := f.instances[0].Stats()
		if more := s.Reading.Retries - int64(granted); s.Local || s.Reading.Initial != 500 || more < 0 || more > 3 || s.Reading.Instances != 2 {
			t.Errorf("after the outage, with %d retries granted: %+v", granted, s)
		}
		for _, b := range f.instances {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if out, back := strings.Count(log.String(), "unreachable"), strings.Count(log.String(), "reachable again"); out != 2 || back != 2 {
			t.Errorf("logged %d outages and %d ends for two instances, want each once:\n%s", out, back, log.String())
		}
	})
}

// Empty data do not double the budget.
func TestFleetBudgetTellsAnEmptyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := newFleet(t, 20, budget.FleetOptions{})
		for step := range 250 {
			for i := range f.instances {
				f.request(i, 3)
			}
			time.Sleep(100 * time.Millisecond)
			if step == 200 {
				f.store.Clear()
			}
		}
		// An instance reports every half second at the latest: a reading lacks what 20
		// of them did in that time, ten requests a second each, and no more.
		s := f.instances[0].Stats()
		if least := int64(200 * (s.ReadAt.Sub(start) - 600*time.Millisecond).Seconds()); s.Reading.Initial < least || s.Reading.Instances != 20 {
			t.Errorf("five seconds after the loss: %+v, want %d requests at least", s, least)
		}
		if age := time.Since(s.ReadAt); age > 600*time.Millisecond {
			t.Errorf("the reading is %v old", age)
		}
		f.check(t)
	})
}

func TestFleetBudgetClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, budget.FleetOptions{})
		for range 200 {
			f.request(0, 0)
			time.Sleep(10 * time.Millisecond)
		}
		a, b := f.instances[0], f.instances[1]
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if s := b.Stats(); s.Reading.Instances != 1 || s.Reading.Initial != 200 {
			t.Errorf("after the other has left: %+v", s)
		}
		if a.Spend(time.Now(), budget.Transient) {
			t.Error("a closed budget spends what it has given back")
		}
	})
}

func TestNewFleetBudgetRefuses(t *testing.T) {
	store := &memstore.Budget{}
	for _, tt := range []struct {
		name  string
		p     budget.Policy
		store budget.Store
		key   string
		opts  budget.FleetOptions
	}{
		{"no store", budget.Policy{}, nil, "k", budget.FleetOptions{}},
		{"no key", budget.Policy{}, store, "", budget.FleetOptions{}},
		{"ratio", budget.Policy{Ratio: 1}, store, "k", budget.FleetOptions{}},
		{"ratio NaN", budget.Policy{Ratio: math.NaN()}, store, "k", budget.FleetOptions{}},
		{"multiplier NaN", budget.Policy{MaxMultiplier: math.NaN()}, store, "k", budget.FleetOptions{}},
		{"multiplier Inf", budget.Policy{MaxMultiplier: math.Inf(1)}, store, "k", budget.FleetOptions{}},
		{"floor", budget.Policy{MinRetries: -1}, store, "k", budget.FleetOptions{}},
		{"high floor", budget.Policy{MinRetries: 1001}, store, "k", budget.FleetOptions{}},
		{"absurd floor", budget.Policy{MinRetries: 1 << 62}, store, "k", budget.FleetOptions{}},
		{"interval", budget.Policy{}, store, "k", budget.FleetOptions{Interval: -1}},
		{"window", budget.Policy{Window: time.Second}, store, "k", budget.FleetOptions{}},
		{"lease", budget.Policy{}, store, "k", budget.FleetOptions{Interval: 6 * time.Second}},
	} {
		if b, err := budget.NewFleet(tt.p, tt.store, tt.key, tt.opts); err == nil {
			_ = b.Close()
			t.Errorf("%s: accepted", tt.name)
		}
	}
}

func TestFleetBudgetSuccessAllocatesNothing(t *testing.T) {
	b, err := budget.NewFleet(budget.Policy{}, &memstore.Budget{}, "k", budget.FleetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	now := time.Now()
	if n := testing.AllocsPerRun(200, func() { b.Request(now) }); n != 0 {
		t.Errorf("Request: %v allocations, want 0", n)
	}
}

// A long quiet outage saves nothing up: the window rolls on.
func TestFleetBudgetAloneRollsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, budget.FleetOptions{})
		f.down(true)
		for range 600 {
			f.request(0, 0)
			time.Sleep(500 * time.Millisecond)
		}
		granted := 0
		for range 60 {
			granted += f.request(0, 3)
		}
		if granted < 20 || granted > 24 {
			t.Errorf("granted %d retries, want those of the last 30 s: 20 %% of about 120", granted)
		}
	})
}

// What an instance holds ends with its lease, since the others get it then.
func TestFleetBudgetHoldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, budget.FleetOptions{})
		for range 100 {
			f.request(0, 0)
			time.Sleep(100 * time.Millisecond) // so that less than one retry is earned since the latest report
		}
		f.down(true)
		time.Sleep(2 * fleetLease)
		if f.instances[0].Spend(time.Now(), budget.Transient) {
			t.Error("spent what it held before the outage")
		}
	})
}

// The floor and the ratio are not added up.
func TestFleetBudgetFloorIsNoExtra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, budget.FleetOptions{})
		granted := 0
		for range 7 {
			time.Sleep(3 * time.Second)
			granted += f.request(0, 0) + f.request(0, 3)
		}
		for range 3 {
			granted += f.request(0, 3)
		}
		if granted < 2 || granted > 3 { // the third may fall between two reports
			t.Errorf("granted %d retries to 17 requests, want 3, or 2", granted)
		}
	})
}
