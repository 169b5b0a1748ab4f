package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/forbear-go/forbear/bench/console/seed"
)

// What the seeded database has: more dead letters than others show.
var world = seed.Config{Messages: 30_000, Letters: 11_000, Endpoints: 400, Held: 40, Redrives: 30, StuckWaiting: 400, StuckDead: 300}

// seeded is a file with the seeded database.
var seeded = sync.OnceValues(func() (string, error) {
	file := filepath.Join(scratch, "seeded.db")
	return file, seed.Fill(context.Background(), file, world)
})

// copied returns a database of the test's own with what is seeded.
func copied(t *testing.T) string {
	t.Helper()
	file, err := seeded()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "forbear.db")
	if err := os.WriteFile(own, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return own
}

// staffed is a serve on a seeded database that demands a token.
type staffed struct {
	*instance
	operator, reader string // tokens
}

func staff(t *testing.T, database string, args ...string) *staffed {
	t.Helper()
	operator, reader := token(t, database, "olga", "admin"), token(t, database, "rita", "read-only")
	return &staffed{serve(t, database, args...), operator, reader}
}

// signIn opens a tab and signs in with a token.
func signIn(t *testing.T, in *instance, token string, l look) *tab {
	t.Helper()
	b := open(t, in.admin, l)
	b.visit("/")
	b.until("document.querySelector('input[name=token]')")
	b.do(chromedp.SendKeys("input[name=token]", token, chromedp.ByQuery))
	b.press("Sign in")
	b.until("document.querySelector('h1')?.innerText === 'Now'")
	return b
}

// receiver is what the endpoint stuck leads to. It refuses all until it is well.
type receiver struct {
	well     atomic.Bool
	received atomic.Int64 // since then
}

// receive gives the endpoint stuck a receiver of the test's own.
func (s *staffed) receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !r.well.Load() {
			http.Error(w, "the receiver is being deployed", http.StatusServiceUnavailable)
			return
		}
		r.received.Add(1)
	}))
	t.Cleanup(srv.Close)
	s.call(t, s.operator, "PATCH", "/v1/endpoints/"+seed.Stuck, fmt.Sprintf(`{"url":%q}`, srv.URL))
	return r
}

// fail has the endpoint stuck refuse as many messages as its breaker opens at.
func (s *staffed) fail(t *testing.T) {
	t.Helper()
	for range 25 {
		s.call(t, s.operator, "POST", "/v1/messages", `{"endpoints":["stuck"],"type":"order.created","payload":{"id":1}}`)
	}
}

// letters returns how many letters are dead: of a destination, or with "" of all.
func (s *staffed) letters(t *testing.T, destination string) (n int) {
	t.Helper()
	body := fmt.Sprintf(`{"filter":{"queue":"webhooks","destination":%q},"dry_run":true}`, destination)
	var found struct{ Count int }
	if err := json.Unmarshal(s.call(t, s.operator, "POST", "/v1/redrives", body), &found); err != nil {
		t.Fatal(err)
	}
	return found.Count
}

// flaky sends requests through the gateway to the sample's flaky upstream, whatever comes
// of them.
func (in *instance) flaky(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		res, err := http.Get(in.gateway + "/flaky/" + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
}
