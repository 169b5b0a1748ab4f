package deliverycheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/latertest"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// earlier names the test binary of an earlier version, built with go test -c there, to
// be upgraded from; without it this version is upgraded to a later one.
const earlier = "FORBEAR_TEST_EARLIER"

// A fleet on one PostgreSQL is upgraded process by process while messages flow: some
// processes are of the version before, also one that is started again, when a later
// one has changed the schema under them. Every offer ends as the rules say.
func TestUpgrade(t *testing.T) {
	before, after := os.Getenv(earlier), os.Args[0]
	if before == "" {
		before, after = os.Args[0], filepath.Join(t.TempDir(), "later.test")
		latertest.Go(t, "test", "-c", "-o", after, ".")
	}
	database := pgtest.Shared(t).Database(t) // empty: the version before makes the tables
	b := newBenchOf(t, before, database, endpoints, 0.01)
	if err := b.fleet.Launch(2); err != nil {
		t.Fatal(err)
	}
	started := []string{before, before, before}
	as := b.fleet.Command
	b.fleet.Command = func(addr string) *exec.Cmd {
		cmd := as(addr)
		// The first to be started again is upgraded, the second is not yet: it has to
		// come up on the schema that the first has changed.
		if len(started) != 4 {
			cmd.Path, cmd.Args[0] = after, after
		}
		started = append(started, cmd.Path)
		return cmd
	}
	hold := make(chan struct{})
	traffic := &Traffic{
		Seed: b.seed, Messages: 1500, Producers: 16, Keys: 64, Endpoints: endpoints, Addrs: b.fleet.Addrs(),
		DB: b.db, Postgres: b.postgres, Clock: b.clock, Ledger: &Ledger{}, Pause: 500 * time.Millisecond, Hold: hold,
	}
	ended := make(chan error, 1)
	go func() { ended <- traffic.Run(t.Context()) }()
	for traffic.Made() < 0.2 {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(look):
		}
	}
	enough := func(kills int) bool { return kills >= 5 && traffic.Made() > 0.8 || len(ended) > 0 }
	if err := b.fleet.Rampage(t.Context(), enough); err != nil {
		t.Fatal(err)
	}
	lastKill := time.Now()
	close(hold)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var step string
	if err := b.db.QueryRowContext(t.Context(), `SELECT name FROM forbear_migrations ORDER BY version DESC LIMIT 1`).Scan(&step); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d offers, %d kills, the last step is %s", len(traffic.Ledger.Offers()), len(b.fleet.Kills()), step)
	if os.Getenv(earlier) == "" && step != "later" {
		t.Errorf("the last step is %s: no process was of a later version", step)
	}
	if len(started) < 8 {
		t.Errorf("started %d processes: some were never started again", len(started))
	}
	b.verdict(t, traffic.Ledger, lastKill)
}
