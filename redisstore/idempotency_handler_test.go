package redisstore_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
)

// payments is a service of two instances over one Redis.
type payments struct {
	t       *testing.T
	urls    []string
	effects atomic.Int64
}

func newPayments(t *testing.T, s *server) *payments {
	p := &payments{t: t}
	for range 2 {
		h, err := idempotency.Handler(openKeys(t, s, redisstore.IdempotencyOptions{}), idempotency.Options{
			Scope: idempotency.SingleTenant(), Logger: slog.New(slog.DiscardHandler), StoreTimeout: 5 * time.Second, Production: true,
		}, http.HandlerFunc(p.pay))
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		p.urls = append(p.urls, web.URL)
	}
	return p
}

func (p *payments) pay(w http.ResponseWriter, _ *http.Request) {
	n := p.effects.Add(1)
	time.Sleep(30 * time.Millisecond)
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "payment %d", n)
}

func (p *payments) post(instance int, key string) (status int, body string, replayed bool) {
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.urls[instance], strings.NewReader("100"))
	if err != nil {
		p.t.Error(err)
		return
	}
	req.Header.Set(idempotency.Header, key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Error(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Header.Get(idempotency.HeaderReplayed) == "true"
}

// Duplicates at two instances run once; what was done is known after the server
// was killed, since its append-only file is synced at each write; and while it
// is gone nothing runs.
func TestTwoInstancesAcrossARestart(t *testing.T) {
	s := startRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	p := newPayments(t, s)
	var wg sync.WaitGroup
	var fresh atomic.Int64
	for n := range 20 {
		wg.Go(func() {
			status, body, replayed := p.post(n%2, "k1")
			if status != http.StatusCreated || body != "payment 1" {
				t.Errorf("got %d %q", status, body)
			}
			if !replayed {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if p.effects.Load() != 1 || fresh.Load() != 1 {
		t.Errorf("%d effects and %d fresh answers, want 1", p.effects.Load(), fresh.Load())
	}
	s.stop()
	if status, body, _ := p.post(0, "k2"); status != http.StatusServiceUnavailable || !strings.Contains(body, "store-unavailable") {
		t.Errorf("without its store: %d %s", status, body)
	}
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	if status, body, replayed := p.post(1, "k1"); status != http.StatusCreated || body != "payment 1" || !replayed {
		t.Errorf("after the restart: %d %q, replayed %v", status, body, replayed)
	}
	if status, body, _ := p.post(0, "k2"); status != http.StatusCreated || body != "payment 2" {
		t.Errorf("another key: %d %q", status, body)
	}
}
