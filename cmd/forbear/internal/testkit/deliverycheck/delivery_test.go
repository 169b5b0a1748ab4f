package deliverycheck

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

var endpoints = []Endpoint{
	{ID: "e0"},
	{ID: "e1", Ordered: true},
	{ID: "e2", Ordered: true, Binary: true},
	{ID: "e3"},
	{ID: "e4", Ordered: true},
	{ID: "e5", Binary: true},
}

// Random traffic with kills, on both databases: every offer ends as the rules
// say.
func TestDelivery(t *testing.T) {
	onBoth(t, size{messages: 3000, pause: 500 * time.Millisecond, kills: 3})
}

func TestSoakDelivery(t *testing.T) {
	ringtest.OnlyNightly(t, "the long form")
	onBoth(t, size{messages: 100_000, kills: 20})
}

// size says how long a run is.
type size struct {
	messages int
	pause    time.Duration
	kills    int // at least
}

func onBoth(t *testing.T, s size) {
	t.Run("SQLite", func(t *testing.T) { delivery(t, filepath.Join(t.TempDir(), "forbear.db"), 1, s) })
	t.Run("PostgreSQL", func(t *testing.T) { delivery(t, pgtest.Database(t), 3, s) })
}

func delivery(t *testing.T, database string, processes int, s size) {
	b := newBench(t, database, endpoints, 0.01)
	for range processes - 1 {
		if err := b.fleet.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	hold := make(chan struct{})
	traffic := &Traffic{
		Seed: b.seed, Messages: s.messages, Producers: 16, Keys: 64, Endpoints: endpoints, Addrs: b.fleet.Addrs(),
		DB: b.db, Postgres: b.postgres, Clock: b.clock, Ledger: &Ledger{}, Pause: s.pause, Hold: hold,
	}
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- traffic.Run(t.Context()) }()
	for traffic.Made() < 0.2 {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(look):
		}
	}
	enough := func(kills int) bool { return kills >= s.kills && traffic.Made() > 0.8 || len(ended) > 0 }
	if err := b.fleet.Rampage(t.Context(), enough); err != nil {
		t.Fatal(err)
	}
	lastKill := time.Now()
	close(hold)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d offers took %v, %d kills", len(traffic.Ledger.Offers()), time.Since(began).Round(time.Millisecond), len(b.fleet.Kills()))
	b.verdict(t, traffic.Ledger, lastKill)
	t.Logf("the run took %v", time.Since(began).Round(time.Second))
}
