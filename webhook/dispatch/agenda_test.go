package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// A receiver is asked when something has happened to it, and when its time has come,
// each once; the latest time counts.
func TestAgenda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fleet(t, 6)
		asks := func() []string {
			synctest.Wait()
			return slices.Sorted(slices.Values(d.agenda.take()))
		}
		began := time.Now()
		at := func(id string, n int) { d.receiver(id).askAt(began.Add(time.Duration(n) * time.Second)) }
		for i, id := range []string{"e4", "e2", "e0", "e3", "e1"} {
			at(id, 5-i)
		}
		at("e0", 9) // was 3
		at("e1", 2) // was 1
		d.agenda.ask("e5", "e5", "e2")
		for _, c := range []struct {
			now  int
			want []string
		}{
			{0, []string{"e2", "e5"}}, {1, nil}, {2, []string{"e1", "e3"}}, {4, []string{"e2"}}, {8, []string{"e4"}}, {9, []string{"e0"}}, {20, nil},
		} {
			time.Sleep(time.Until(began.Add(time.Duration(c.now) * time.Second)))
			if got := asks(); !slices.Equal(got, c.want) {
				t.Errorf("at %d: got %v, want %v", c.now, got, c.want)
			}
		}
	})
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

// What idle receivers cost a turn of the loop: nothing.
func TestIdleReceiversAreNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fleet(t, 100)
		d.dueAt("e7", time.Now())
		d.dueAt("e8", time.Now().Add(time.Hour))
		if c := d.wants(); len(c.specs) != 1 || c.specs[0].Endpoint != "e7" || !c.again.IsZero() {
			t.Errorf("got %+v, again in %v", c.specs, time.Until(c.again))
		}
		time.Sleep(30 * time.Minute)
		if asked := d.agenda.take(); len(asked) != 0 {
			t.Errorf("%v are asked for nothing", asked)
		}
		time.Sleep(time.Hour)
		if asked := d.agenda.take(); !slices.Equal(asked, []string{"e8"}) {
			t.Errorf("after an hour: %v", asked)
		}
	})
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
