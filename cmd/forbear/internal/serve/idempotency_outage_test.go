package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// A database that goes away while a keyed request is under way, and a gateway that is
// stopped before it is back: the outcome is the spool keeps the outcomes, and the next gateway has it.
func TestServeSpoolsOutcomes(t *testing.T) {
	pg := pgtest.Start(t)
	name := pg.Database(t)
	var done atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if done.Add(1) == 1 {
			pg.Halt(syscall.SIGQUIT)
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "booked with a secret")
	}))
	defer up.Close()
	spool := filepath.Join(t.TempDir(), "outcomes")
	config := clitest.File(t, "policy.yaml", ingressPolicy(up.URL, "{principal: single}"))
	args := []string{"--config", config, "--drain-delay", "0s", "--database", name, "--no-delivery", "--idempotency-spool", spool}

	admin := closed(t)
	s := startServe(t, append(args, "--admin", strings.TrimPrefix(admin, "http://"))...)
	for i := range 2 {
		if got := postOnce(t, s.base+"/pay/book", "key-1"); got.status != 201 || got.body != "booked with a secret" || got.replayed != (i > 0) {
			t.Errorf("request %d during the outage: got %+v", i, got)
		}
	}
	if got := postOnce(t, s.base+"/pay/book", "key-2"); got.status != 503 {
		t.Errorf("another key during the outage: got %+v", got)
	}
	if _, page := status(t, "GET", admin+"/metrics", ""); !strings.Contains(page, "idempotency_outcomes_waiting 1") || !strings.Contains(page, `result="deferred",service=""} 1`) {
		t.Error("the metrics show no outcome that waits")
	}
	if code := s.stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.log)
	}
	if log := s.log.String(); !strings.Contains(log, "the spool keeps the outcomes") || strings.Contains(log, "key-1") || strings.Contains(log, "secret") {
		t.Errorf("log:\n%s", log)
	}
	info, err := os.Stat(spool)
	if err != nil || info.Size() == 0 || info.Mode().Perm() != 0o600 {
		t.Fatalf("the spool: %+v, %v", info, err)
	}

	pg.Boot(t)
	s = startServe(t, args...)
	if got := postOnce(t, s.base+"/pay/book", "key-1"); got.status != 201 || got.body != "booked with a secret" || !got.replayed {
		t.Errorf("after the outage: got %+v", got)
	}
	for end := time.Now().Add(30 * time.Second); info.Size() > 0; time.Sleep(20 * time.Millisecond) {
		if info, err = os.Stat(spool); err != nil || time.Now().After(end) {
			t.Fatalf("the spool is not emptied: %v, %v", info, err)
		}
	}
	s.stop()
	s = startServe(t, "--config", config, "--drain-delay", "0s", "--database", name, "--no-delivery")
	if got := postOnce(t, s.base+"/pay/book", "key-1"); got.status != 201 || got.body != "booked with a secret" || !got.replayed {
		t.Errorf("a gateway without the spool: got %+v", got)
	}
	if n := done.Load(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

// A spool that cannot be used is a reason not to start: it was asked for.
func TestServeSpoolIsRefused(t *testing.T) {
	config := clitest.File(t, "policy.yaml", ingressPolicy("http://127.0.0.1:1", "{principal: single}"))
	got := clitest.Run(t, Command(), "", "--config", config, "--database", filepath.Join(t.TempDir(), "forbear.db"), "--no-delivery", "--idempotency-spool", t.TempDir())
	if got.Code == 0 || !strings.Contains(got.Errors, "--idempotency-spool") {
		t.Errorf("got %+v", got)
	}
}
