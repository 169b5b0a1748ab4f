package sqltest

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// The environment that turns the test binary into a consumer: the database, and
// where it stops to be killed, or the number of events that it is to process.
const (
	inboxEnv = "FORBEAR_TEST_INBOX"
	stopEnv  = "FORBEAR_TEST_INBOX_STOP"
	loadEnv  = "FORBEAR_TEST_INBOX_EVENTS"
)

func TestMain(m *testing.M) {
	if place := os.Getenv(inboxEnv); place != "" {
		if err := consumeUntilKilled(place); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgtest.Main(m, migrated))
}

// stopping is a store whose process stops after the end of an event was written
// into its transaction, before the commit.
type stopping struct {
	*sqlstore.Transactions
	at string
}

func (s *stopping) CompleteIn(ctx context.Context, tx *sql.Tx, k idempotency.Token, a idempotency.Response, retention time.Duration) error {
	err := s.Transactions.CompleteIn(ctx, tx, k, a, retention)
	stop(s.at, "commit")
	return err
}

// stop tells the test that the process is at a place, and waits for its end.
func stop(at, here string) {
	if at == here {
		fmt.Println("stopped")
		select {}
	}
}

// consumeUntilKilled processes event "a" and stops on the way, or many events, each
// of which it names when it is acknowledged.
func consumeUntilKilled(place string) error {
	ctx := context.Background()
	db, end, err := connect(ctx, place)
	if err != nil {
		return err
	}
	defer end()
	in, err := openInbox(place, db)
	if err != nil {
		return err
	}
	at := os.Getenv(stopEnv)
	c, err := in.consumer(&stopping{Transactions: db.Transactions(in.pool), at: at}, func(ctx context.Context, e consume.Event) error {
		err := in.book(ctx, e)
		stop(at, "handler")
		return err
	}, func(o *consume.Options) {
		o.Crashes = 1000
		if brief(o); at == "" { // many wait for the leases of the dead, however late these were
			o.Lease = 300 * time.Millisecond
		}
	})
	if err != nil {
		return err
	}
	if at != "" {
		deliver(ctx, c, event("a"))
		stop(at, "acknowledgement")
		return fmt.Errorf("did not stop at %s", at)
	}
	n := 0
	_, _ = fmt.Sscan(os.Getenv(loadEnv), &n)
	next, wg := make(chan int), sync.WaitGroup{}
	for range 4 {
		wg.Go(func() {
			for i := range next {
				fmt.Println(deliver(ctx, c, event(fmt.Sprintf("%03d", i))).Action)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	fmt.Println("all")
	return nil
}

// child starts a consumer of its own process, whose lines come on the channel.
func (in *inbox) child(t *testing.T, env string) (cmd *exec.Cmd, lines chan string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), inboxEnv+"="+in.place, env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines = make(chan string, 10_000)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return cmd, lines
}

// A consumer is killed at each point between the work of its handler and the
// acknowledgement. The event comes again, to another process, and is done once.
func testInboxKilled(t *testing.T, in *inbox) {
	for _, tc := range []struct {
		at        string
		calls     int64
		duplicate bool
	}{
		{"handler", 1, false},
		{"commit", 1, false},
		{"acknowledgement", 0, true},
	} {
		in.clear(t)
		cmd, lines := in.child(t, stopEnv+"="+tc.at)
		if line := <-lines; line != "stopped" {
			t.Fatalf("%s: the consumer says %q", tc.at, line)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		var calls atomic.Int64
		c := in.mustConsumer(t, in.db.Transactions(in.pool), func(ctx context.Context, e consume.Event) error {
			calls.Add(1)
			return in.book(ctx, e)
		}, nil)
		if d := deliver(t.Context(), c, event("a")); d.Action != consume.Ack || d.Duplicate != tc.duplicate || calls.Load() != tc.calls {
			t.Errorf("killed at its %s: %+v, %d calls; want duplicate %v and %d calls", tc.at, d, calls.Load(), tc.duplicate, tc.calls)
		}
		in.want(t, "a 1")
	}
}

// Consumers are killed again and again in the middle of two hundred events, which
// each new one gets from the beginning: each is booked once, and sent once.
func testInboxKilledAgainAndAgain(t *testing.T, in *inbox) {
	const events, kills = 200, 12
	for killed, done := 0, false; !done; killed++ {
		cmd, lines := in.child(t, fmt.Sprint(loadEnv, "=", events))
		left := rand.IntN(60)
		for line := range lines {
			if line != "all" && line != "ack" {
				t.Errorf("the consumer says %q", line)
			}
			done = line == "all"
			if left--; left < 0 && killed < kills {
				time.Sleep(rand.N(3 * time.Millisecond))
				_ = cmd.Process.Kill()
				break
			}
		}
		for range lines { // until it has ended
		}
		_ = cmd.Wait()
		done = done && killed >= kills
	}
	var want []string
	for i := range events {
		want = append(want, fmt.Sprintf("%03d", i))
	}
	if got := in.column(t, `SELECT event FROM booked ORDER BY event`); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%d rows are booked, want each of %d events once: %q", len(got), events, got)
	}
	if got := in.column(t, `SELECT substr(message_id, 8) FROM forbear_outbox ORDER BY message_id`); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%d messages are in the outbox, want one of each of %d events: %q", len(got), events, got)
	}
}
