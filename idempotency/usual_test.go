package idempotency_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// A duplicate waits as long as its operation usually takes, and is told to come back
// by the same time; other operations do not count, and ids in paths do not matter.
func TestDuplicatesWaitAsLongAsItUsuallyTakes(t *testing.T) {
	for _, c := range []struct {
		name   string
		seen   []time.Duration
		path   string        // of the operation that was seen
		run    time.Duration // under way
		status int
		waited time.Duration
		after  string
	}{
		{"none was seen", nil, "/pay/1", time.Minute, 409, 5 * time.Second, "5"},
		{"slow", []time.Duration{20 * time.Second}, "/pay/1", 15 * time.Second, 201, 15 * time.Second, ""},
		{"as long as usual, and a moment", []time.Duration{20 * time.Second}, "/pay/1", 21 * time.Second, 201, 21 * time.Second, ""},
		{"slow, and outlasted", []time.Duration{20 * time.Second}, "/pay/1", time.Minute, 409, 25 * time.Second, "10"},
		{"quick", []time.Duration{20 * time.Millisecond}, "/pay/1", time.Minute, 409, time.Second, "1"},
		{"very slow", []time.Duration{5 * time.Minute}, "/pay/1", 10 * time.Minute, 409, 30 * time.Second, "30"},
		{"slow lately", append(make([]time.Duration, 18), 8*time.Second), "/pay/1", time.Minute, 409, 10 * time.Second, "4"},
		{"slow once, long ago", append([]time.Duration{8 * time.Second}, make([]time.Duration, 18)...), "/pay/1", time.Minute, 409, time.Second, "1"},
		{"another operation is quick", []time.Duration{time.Second, 20 * time.Second}, "", time.Minute, 409, 25 * time.Second, "10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := time.Duration(0)
				h, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{Scope: idempotency.SingleTenant(), Lease: 10 * time.Minute, MaxRun: time.Hour, Logger: quiet()},
					http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						time.Sleep(run)
						w.WriteHeader(201)
					}))
				if err != nil {
					t.Fatal(err)
				}
				send := func(path, key string) *httptest.ResponseRecorder {
					r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
					r.Header.Set("Idempotency-Key", key)
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					return w
				}
				for i, d := range c.seen {
					run = d
					path := c.path
					if path == "" {
						path = []string{"/look", "/pay/1"}[i]
					}
					send(path, fmt.Sprint("seen-", i))
				}
				run = c.run
				var wg sync.WaitGroup
				wg.Go(func() { send("/pay/2", "k") })
				synctest.Wait()
				began := time.Now()
				w := send("/pay/2", "k")
				if waited := time.Since(began); w.Code != c.status || waited != c.waited || w.Header().Get("Retry-After") != c.after {
					t.Errorf("got %d after %v, Retry-After %q; want %d after %v, %q", w.Code, waited, w.Header().Get("Retry-After"), c.status, c.waited, c.after)
				}
				wg.Wait()
			})
		})
	}
}
