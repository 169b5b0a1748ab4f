package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// take returns what is to be asked at a time, in order.
func (a *agenda) asks(now time.Time) (ids []string) {
	for id := range a.take(now) {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// A lane is asked when something has happened to it, and when its time has come,
// each once; the latest time counts.
func TestAgenda(t *testing.T) {
	var a agenda
	began := time.Now()
	at := func(n int) time.Time { return began.Add(time.Duration(n) * time.Second) }
	for i, id := range []string{"e", "c", "a", "d", "b"} {
		a.askAt(id, at(5-i))
	}
	a.askAt("a", at(9)) // was 3
	a.askAt("b", at(2)) // was 1
	a.ask("f")
	a.ask("f")
	a.ask("c")
	for _, c := range []struct {
		now  int
		want []string
		next int
	}{
		{0, []string{"c", "f"}, 2}, {1, nil, 2}, {2, []string{"b", "d"}, 4}, {4, []string{"c"}, 5}, {8, []string{"e"}, 9}, {9, []string{"a"}, -1},
	} {
		if got := a.asks(at(c.now)); !slices.Equal(got, c.want) {
			t.Errorf("at %d: got %v, want %v", c.now, got, c.want)
		}
		if next := a.next(); c.next < 0 && !next.IsZero() || c.next >= 0 && !next.Equal(at(c.next)) {
			t.Errorf("at %d: next at %v", c.now, next.Sub(began))
		}
	}
	a.ask("x")
	taken := a.take(at(9))
	a.ask("y")
	a.putBack(taken)
	if got := a.asks(at(9)); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("put back: %v", got)
	}
}

// fleet makes a dispatcher with n endpoints that are idle.
func fleet(tb testing.TB, n int) *Dispatcher {
	tb.Helper()
	s := newStore(tb, n)
	d, err := New(Config{Store: s, Alerts: s})
	if err != nil {
		tb.Fatal(err)
	}
	if err := d.Load(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	d.wants()
	return d
}

// What idle lanes cost a turn of the loop: nothing.
func TestIdleLanesAreNotAsked(t *testing.T) {
	d := fleet(t, 100)
	d.dueAt("e7", time.Now())
	d.dueAt("e8", time.Now().Add(time.Hour))
	c := d.wants()
	if len(c.specs) != 1 || c.specs[0].Endpoint != "e7" || time.Until(c.again) < time.Minute {
		t.Errorf("got %+v, again in %v", c.specs, time.Until(c.again))
	}
	if asked := d.agenda.asks(time.Now().Add(30 * time.Minute)); len(asked) != 0 {
		t.Errorf("%v are asked for nothing", asked)
	}
	if asked := d.agenda.asks(time.Now().Add(2 * time.Hour)); !slices.Equal(asked, []string{"e8"}) {
		t.Errorf("in two hours: %v", asked)
	}
}

// A turn of the main loop with ten busy lanes among many that are idle.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := fleet(b, n)
			for b.Loop() {
				for i := range 10 {
					d.dueAt(fmt.Sprint("e", i), time.Now())
				}
				if c := d.wants(); len(c.specs) != 10 {
					b.Fatal(len(c.specs))
				}
			}
		})
	}
}

// What one endpoint's change costs a process that reads it.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := fleet(b, n)
			for b.Loop() {
				if _, err := d.cfg.Store.PutEndpoint(b.Context(), webhook.Endpoint{ID: "e7", URL: "https://example.com/"}); err != nil {
					b.Fatal(err)
				}
				if err := d.Load(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
