package deliverycheck

import (
	"slices"
	"testing"
	"time"
)

// What keeps the rules is found clean.
func TestVerdictIsSilent(t *testing.T) {
	for seed := range uint64(12) {
		ev := simulate(seed, 1500)
		r := Judge(ev)
		if len(r.Violations) > 0 {
			t.Fatalf("seed %d\n%s\n%s", seed, r.Summary(), r.First(5))
		}
		if r.Ordered < 200 || r.Letters["conflict"] < 30 || r.Letters["invalid"] < 10 || r.Resends < 10 || r.Failed < 10 {
			t.Fatalf("seed %d: too little was shown\n%s", seed, r.Summary())
		}
	}
}

// Each planted fault is found, under its rule.
func TestVerdictFindsPlantedFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rule  int
		plant func(ev *Evidence) bool
	}{
		{"the content of another endpoint", 1, func(ev *Evidence) bool {
			return ev.each(func(a *Arrival, o *Offer) bool {
				for _, other := range ev.Offers {
					if other.ID == o.ID && !slices.Contains(other.Endpoints, a.Endpoint) && other.Sum != o.Sum && ev.only(o) {
						wire := other.Content.Wire(ev.endpoint(a.Endpoint), a.ID)
						found := wire != a.Wire
						ev.edit(a.Endpoint, a.ID, func(a *Arrival) { a.Wire = wire })
						return found
					}
				}
				return false
			})
		}},
		{"a conflict answered as a duplicate", 2, func(ev *Evidence) bool { return ev.turn(Refused, Duplicate, nil) }},
		{"a conflict accepted", 2, func(ev *Evidence) bool { return ev.turn(Refused, Accepted, nil) }},
		{"a new message answered as a duplicate", 2, func(ev *Evidence) bool {
			return ev.turn(Accepted, Duplicate, func(o *Offer) bool { return o.Kind == Fresh && ev.only(o) })
		}},
		{"a new message refused", 2, func(ev *Evidence) bool {
			return ev.turn(Accepted, Refused, func(o *Offer) bool { return o.Kind == Fresh && ev.only(o) })
		}},
		{"a response that means nothing", 2, func(ev *Evidence) bool { return ev.turn(Duplicate, Unexpected, nil) }},
		{"a refused row without a trace", 2, func(ev *Evidence) bool { return ev.drop("conflict") }},
		{"a refused row with another payload", 2, func(ev *Evidence) bool { return ev.spoil("conflict") }},
		{"a duplicate accepted again", 3, func(ev *Evidence) bool {
			return ev.turn(Duplicate, Accepted, func(o *Offer) bool { return ev.arrivedBefore(o) })
		}},
		{"a duplicate refused", 3, func(ev *Evidence) bool {
			return ev.turn(Duplicate, Refused, func(o *Offer) bool { return ev.lateRival(o) })
		}},
		{"a message lost", 4, func(ev *Evidence) bool {
			return ev.each(func(a *Arrival, o *Offer) bool { return o.Result == Accepted && ev.alone(o) && ev.lose(a) })
		}},
		{"a row lost", 4, func(ev *Evidence) bool {
			return ev.each(func(a *Arrival, o *Offer) bool { return o.Result == Committed && ev.alone(o) && ev.lose(a) })
		}},
		{"a message that never got beyond 503", 4, func(ev *Evidence) bool {
			return ev.each(func(a *Arrival, o *Offer) bool {
				return o.Result == Accepted && ev.edit(a.Endpoint, a.ID, func(a *Arrival) { a.Status = 503 })
			})
		}},
		{"a body altered", 4, func(ev *Evidence) bool { ev.Arrivals[0].Wire[0] ^= 1; return true }},
		{"one of two attempts altered", 4, func(ev *Evidence) bool {
			return ev.each(func(a *Arrival, _ *Offer) bool {
				if a.good() {
					return false
				}
				a.Wire[0] ^= 1
				return true
			})
		}},
		{"a message at an endpoint of another", 4, func(ev *Evidence) bool {
			return ev.each(func(a *Arrival, o *Offer) bool {
				if !ev.only(o) || a.Endpoint == "e3" {
					return false
				}
				a.Endpoint, a.Path = "e3", path("e3")
				return true
			})
		}},
		{"another path", 4, func(ev *Evidence) bool { ev.Arrivals[0].Path = "/"; return true }},
		{"what was rolled back", 4, func(ev *Evidence) bool { return ev.deliver(RolledBack) }},
		{"what was refused", 4, func(ev *Evidence) bool { return ev.deliver(Refused) }},
		{"a delivered row that is a letter too", 4, func(ev *Evidence) bool {
			return ev.each(func(_ *Arrival, o *Offer) bool { return o.Result == Committed && ev.bury(o, "conflict") })
		}},
		{"a letter for another reason", 4, func(ev *Evidence) bool {
			return ev.each(func(_ *Arrival, o *Offer) bool { return o.Result == Committed && ev.bury(o, "exhausted") })
		}},
		{"a refused row twice a letter", 4, func(ev *Evidence) bool {
			i := slices.IndexFunc(ev.Letters, func(l Letter) bool { return l.Reason == "conflict" })
			ev.Letters = append(ev.Letters, ev.Letters[i])
			return true
		}},
		{"a message sent again without a kill", 5, func(ev *Evidence) bool { ev.again(0, 1); return true }},
		{"a message sent again long after the kill", 5, func(ev *Evidence) bool {
			first := ev.Arrivals[0]
			ev.Kills = []Kill{{ev.now() + 1, first.At.Add(time.Minute)}}
			ev.again(0, len(ev.Arrivals))
			return true
		}},
		{"two messages of a key swapped", 6, func(ev *Evidence) bool { return ev.swap(false) }},
		{"two rows of a transaction swapped", 6, func(ev *Evidence) bool { return ev.swap(true) }},
		{"a message sent again after the next of its key", 6, func(ev *Evidence) bool {
			for i := range ev.Arrivals {
				if a := &ev.Arrivals[i]; ev.endpoint(a.Endpoint).Ordered && a.good() {
					ev.Kills = append(ev.Kills, Kill{ev.now() + 1, a.At})
					ev.again(i, len(ev.Arrivals))
					if Judge(ev).Count(6) > 0 {
						return true
					}
				}
				if i > 200 {
					break
				}
			}
			return false
		}},
		{"an invalid row without a letter", 7, func(ev *Evidence) bool { return ev.drop("invalid") }},
		{"an invalid row with another payload", 7, func(ev *Evidence) bool { return ev.spoil("invalid") }},
		{"an invalid row sent", 7, func(ev *Evidence) bool {
			for _, o := range ev.Offers {
				if o.Invalid != "" && o.Result == Committed {
					ev.send(o)
					return true
				}
			}
			return false
		}},
		{"rows left in the outbox", 7, func(ev *Evidence) bool { ev.Left = 3; return true }},
		{"a deadlock", 8, func(ev *Evidence) bool { ev.Deadlocks = 1; return true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(2) {
				ev := simulate(100+seed, 1200)
				if !tc.plant(ev) {
					t.Fatalf("seed %d: nowhere to plant it", seed)
				}
				if r := Judge(ev); r.Count(tc.rule) == 0 {
					t.Errorf("seed %d: no violation of rule %d\n%s", seed, tc.rule, r.Summary())
				}
			}
		})
	}
}
