package durable

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/race"
)

// slow is a receiver that a backlog forms before: it takes its time, refuses the first
// attempt of each tenth message, and keeps what it has accepted.
type slow struct {
	*httptest.Server
	mu      sync.Mutex
	busy    int // requests that are being answered
	refused map[string]bool
	seen    map[string][]string // bodies by id
}

func newSlow(t *testing.T) *slow {
	s := &slow{refused: map[string]bool{}, seen: map[string][]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.busy++
		s.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		time.Sleep(20 * time.Millisecond)
		id := r.Header.Get("Webhook-Id")
		s.mu.Lock()
		defer s.mu.Unlock()
		defer func() { s.busy-- }()
		if strings.HasSuffix(id, "0") && !s.refused[id] {
			s.refused[id] = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.seen[id] = append(s.seen[id], string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

// taken returns what has arrived from a process that has ended, and begins anew.
func (s *slow) taken(t *testing.T) map[string][]string {
	waitFor(t, "the end of what is being answered", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.busy == 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = map[string][]string{}
	return seen
}

// A backup is taken while messages flow, the process is killed later, and another one
// starts on the backup: all that was accepted before it arrives, once more at most,
// under its id and as it was.
func TestRestore(t *testing.T) {
	t.Parallel()
	race.TooSlow(t, "TestKillLoop and TestClockJumps begin anew on a database, too")
	t.Run("SQLite", func(t *testing.T) {
		dir := t.TempDir()
		restore(t, filepath.Join(dir, "forbear.db"), func(from string) (to string) {
			to = filepath.Join(dir, "backup.db")
			if err := database.Backup(t.Context(), from, to); err != nil {
				t.Fatal(err)
			}
			return to
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		restore(t, pgtest.Database(t), func(from string) (to string) {
			file := filepath.Join(t.TempDir(), "forbear.dump")
			to = pgtest.Shared(t).Database(t)
			for _, args := range [][]string{{"pg_dump", "-Fc", "-f", file, from}, {"pg_restore", "-d", to, "--no-owner", file}} {
				if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", args[0], err, out)
				}
			}
			return to
		})
	})
}

func restore(t *testing.T, from string, backup func(from string) (to string)) {
	sink := newSlow(t)
	prepare(t, from, sink.URL)
	p := spawn(t, from, "")
	p.ready(t)
	var mu sync.Mutex
	var acked []string
	stop := make(chan struct{})
	var producers sync.WaitGroup
	for w := range 4 {
		producers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("p%d-%d", w, i)
				due := time.Now()
				if i%3 == 0 {
					due = due.Add(3 * time.Second) // waits at the backup
				}
				resp, err := http.Post("http://"+p.addr+"/v1/messages", "application/json", bytes.NewReader(fmt.Appendf(nil,
					`{"id":%q,"endpoint":"a","payload":{"of":%q},"not_before":%q}`, id, id, due.UTC().Format(time.RFC3339Nano))))
				if err != nil {
					continue
				}
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusAccepted {
					mu.Lock()
					acked = append(acked, id)
					mu.Unlock()
				}
			}
		})
	}
	time.Sleep(time.Second)
	mu.Lock()
	before := slices.Clone(acked)
	mu.Unlock()
	to := backup(from)
	time.Sleep(300 * time.Millisecond)
	p.kill()
	close(stop)
	producers.Wait()
	first := sink.taken(t)
	// The time that leases take to run out, as far as the backup is concerned.
	restored := outside(t, to)
	if _, err := restored.ExecContext(t.Context(), `UPDATE forbear_deliveries SET lease = lease - 60000000 WHERE state = 1`); err != nil {
		t.Fatal(err)
	}
	svc, end := start(t, Options{Database: to})
	arrived := func(id string) bool {
		sink.mu.Lock()
		defer sink.mu.Unlock()
		return len(first[id])+len(sink.seen[id]) > 0
	}
	// What was under way at the backup is sent again, though a slow backup gave it the
	// time to arrive before.
	left, unfinished := slices.Clone(before), -1
	waitFor(t, "all that was accepted before the backup", func() bool {
		if err := restored.QueryRowContext(t.Context(), `SELECT count(*) FROM forbear_deliveries WHERE state IN (0, 1)`).Scan(&unfinished); err != nil {
			t.Fatal(err)
		}
		left = slices.DeleteFunc(left, arrived)
		return len(left) == 0 && unfinished == 0
	})
	if n, err := svc.DB.DeadLetters().Count(t.Context(), queue.Filter{}); n != 0 || err != nil {
		t.Errorf("%d dead letters, %v", n, err)
	}
	end()
	second, twice := sink.taken(t), 0
	for id, bodies := range second {
		if len(bodies) > 1 || bodies[0] != `{"of":"`+id+`"}` {
			t.Errorf("%s has come as %q", id, bodies)
		}
		if len(first[id]) > 0 {
			twice++
		}
	}
	if len(second) == 0 {
		t.Error("nothing was in flight: nothing was shown")
	}
	t.Logf("%d accepted before the backup and %d in all; %d delivered after the restore, %d of them again", len(before), len(acked), len(second), twice)
}
