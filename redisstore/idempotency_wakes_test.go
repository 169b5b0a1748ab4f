package redisstore_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
)

// A duplicate that waits at another instance is woken by the end of the run, long
// before it would have polled. The prefix has the signs of a pattern.
func TestDuplicateElsewhereIsWoken(t *testing.T) {
	s := startRedis(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	post := func() <-chan string {
		h, err := idempotency.Handler(openKeys(t, s, redisstore.IdempotencyOptions{Prefix: "a[b]*?:"}), idempotency.Options{
			Scope: idempotency.SingleTenant(), Poll: 1000 * time.Hour, Wait: 1000 * time.Hour, StoreTimeout: time.Minute, Lease: 10 * time.Minute,
			Logger: slog.New(slog.DiscardHandler),
		}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-goOn
			_, _ = io.WriteString(w, "paid")
		}))
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		got := make(chan string, 1)
		go func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader("{}"))
			req.Header.Set(idempotency.Header, "k")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				got <- err.Error()
				return
			}
			defer func() { _ = resp.Body.Close() }()
			body, _ := io.ReadAll(resp.Body)
			got <- string(body) + resp.Header.Get(idempotency.HeaderReplayed)
		}()
		return got
	}
	first := post()
	<-begun
	second := post()
	client := redis.NewClient(&redis.Options{Addr: s.address})
	t.Cleanup(func() { _ = client.Close() })
	for client.PubSubNumPat(t.Context()).Val() == 0 { // until the duplicate listens
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	for i, want := range []string{"paid", "paidtrue"} {
		select {
		case got := <-[]<-chan string{first, second}[i]:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("the duplicate was not woken")
		}
	}
}
