package durable

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// How fast delivery is and how late its retries are is measured in
// bench/delivery: no test here depends on the speed of the machine.

// One of 100 endpoints hangs and gets a third of everything: the others get all
// of theirs meanwhile, and it gets no more at once than it may.
func TestOneHangingEndpointOfAHundred(t *testing.T) {
	const messages, slots = 1500, 4
	var inFlight, most atomic.Int32
	var mu sync.Mutex
	arrived := map[string]int{}
	release := make(chan struct{})
	s := newSink(t)
	s.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/e0" {
			n := inFlight.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-release
			inFlight.Add(-1)
		}
		mu.Lock()
		arrived[r.URL.Path]++
		mu.Unlock()
	})
	count := func(hanging bool) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for path, k := range arrived {
			if (path == "/e0") == hanging {
				n += k
			}
		}
		return n
	}
	wait := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(60 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not after a minute", what)
			}
		}
	}
	databases(t, func(t *testing.T, name string) {
		mu.Lock()
		clear(arrived)
		mu.Unlock()
		release = make(chan struct{})
		end := sync.OnceFunc(func() { close(release) })
		t.Cleanup(end) // or nothing could be stopped
		svc, stop := start(t, Options{Database: name})
		var batch []webhook.Message
		toHanging := 0
		for i := range 100 {
			e := webhook.Endpoint{ID: fmt.Sprint("e", i), URL: fmt.Sprint(s.URL, "/e", i), Concurrency: slots}
			e.Policy.PerAttempt = time.Minute
			put(t, svc, e)
		}
		for i := range messages {
			e := fmt.Sprint("e", i%100)
			if i%3 == 0 {
				e = "e0"
			}
			if e == "e0" {
				toHanging++
			}
			batch = append(batch, webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{e}, Body: []byte(`{}`)})
		}
		if _, err := svc.Dispatcher.Accept(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
		wait("what is for the others", func() bool { return count(false) == messages-toHanging })
		if n := count(true); n != 0 {
			t.Fatalf("%d requests of the hanging endpoint ended: it did not hang", n)
		}
		wait("the hanging endpoint", func() bool { return inFlight.Load() >= slots })
		end()
		wait("what is for the endpoint that hung", func() bool { return count(true) == toHanging })
		if m := most.Load(); m != slots {
			t.Errorf("%d attempts at once at the endpoint that hung, want its %d", m, slots)
		}
		stop()
	})
}
