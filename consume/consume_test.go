package consume_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// letters is a dead-letter queue that can be down.
type letters struct {
	mu   sync.Mutex
	down bool
	byID map[string]deadletter.Letter
}

func (l *letters) Put(_ context.Context, x deadletter.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return errors.New("queue is down")
	}
	if l.byID == nil {
		l.byID = map[string]deadletter.Letter{}
	}
	if _, known := l.byID[x.ID]; !known {
		l.byID[x.ID] = x
	}
	return nil
}

func (l *letters) only(t *testing.T) deadletter.Letter {
	t.Helper()
	if len(l.byID) != 1 {
		t.Fatalf("%d dead letters, want 1", len(l.byID))
	}
	for _, x := range l.byID {
		return x
	}
	return deadletter.Letter{}
}

func retryer(t *testing.T, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	p.Kind = forbear.Event
	r, err := forbear.New("orders", p, append(opts, forbear.WithoutLog(), forbear.WithCallerDeadLetter())...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func options(t *testing.T, q *letters) consume.Options {
	return consume.Options{Group: "g", Store: &memstore.Idempotency{}, DLQ: q, Retryer: retryer(t, forbear.Policy{})}
}

func consumer(t *testing.T, o consume.Options, h consume.Handler) *consume.Consumer {
	t.Helper()
	c, err := consume.New(h, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func event(id string) consume.Event {
	return consume.Event{ID: id, Source: "/orders", Type: "order.created", Data: []byte(`{"n":1}`), Headers: []deadletter.Header{{Name: "x-a", Value: "1"}}}
}

// deliver gives an event until it is acknowledged, as a broker does.
func deliver(t *testing.T, c *consume.Consumer, e consume.Event) consume.Decision {
	t.Helper()
	for range 100 {
		d := c.Consume(t.Context(), e)
		if d.Action != consume.RetryAt {
			return d
		}
		time.Sleep(time.Until(d.At))
	}
	t.Fatal("never done")
	return consume.Decision{}
}

func flaky() error { return forbear.Retryable(errors.New("not now"), forbear.Hint{}) }

func TestDuplicateIsDropped(t *testing.T) {
	var n int
	c := consumer(t, options(t, &letters{}), func(context.Context, consume.Event) error { n++; return nil })
	if d := deliver(t, c, event("e1")); d.Action != consume.Ack || d.Duplicate {
		t.Errorf("got %+v", d)
	}
	if d := deliver(t, c, event("e1")); d.Action != consume.Ack || !d.Duplicate {
		t.Errorf("got %+v", d)
	}
	other := event("e1")
	other.Source = "/b"
	deliver(t, c, other)
	if n != 2 {
		t.Errorf("%d runs, want one of each source", n)
	}
}

// A deduplicator that marks before the handler drops the redelivery of an event
// that failed.
func TestFailedEventIsNotADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		o := options(t, &letters{})
		o.InPlace = -1
		c := consumer(t, o, func(context.Context, consume.Event) error {
			if n++; n == 1 {
				return flaky()
			}
			return nil
		})
		if d := deliver(t, c, event("e1")); d.Action != consume.Ack || d.Duplicate || n != 2 {
			t.Errorf("got %+v after %d runs", d, n)
		}
	})
}

func TestTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		c := consumer(t, options(t, &letters{}), func(context.Context, consume.Event) error {
			time.Sleep(time.Second)
			n.Add(1)
			return nil
		})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { deliver(t, c, event("e4")) })
		}
		wg.Wait()
		if n.Load() != 1 {
			t.Errorf("%d runs, want 1", n.Load())
		}
	})
}

func TestExhaustedGoesToTheQueue(t *testing.T) {
	for _, inPlace := range []int{0, -1} {
		t.Run(fmt.Sprintf("in place %d", inPlace), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &letters{}
				o := options(t, q)
				o.InPlace = inPlace
				n := 0
				c := consumer(t, o, func(context.Context, consume.Event) error { n++; return flaky() })
				d := deliver(t, c, event("e7"))
				if d.Action != consume.DeadLettered || n != 6 {
					t.Fatalf("%d attempts, want 6; %+v", n, d)
				}
				l := q.only(t)
				if string(l.Payload) != `{"n":1}` || l.EventID != "e7" || l.Source != "/orders" || l.Attempts != 6 || l.Queue != "g" || l.Reason != "exhausted" ||
					l.ErrorType == "" || len(l.Headers) != 1 || len(l.History) != 6 || !l.LastAttempt.After(l.FirstAttempt) {
					t.Errorf("got %+v", l)
				}
				if d := deliver(t, c, event("e7")); d.Action != consume.DeadLettered || !d.Duplicate || n != 6 {
					t.Errorf("a duplicate of a dead letter: %+v, %d runs", d, n)
				}
			})
		})
	}
}

func TestPoisonGoesToTheQueueAtOnce(t *testing.T) {
	for name, h := range map[string]consume.Handler{
		"terminal": func(context.Context, consume.Event) error { return forbear.Terminal(errors.New("bad")) },
		"unknown":  func(context.Context, consume.Event) error { return errors.New("what is this") },
		"panic":    func(context.Context, consume.Event) error { panic("bad") },
	} {
		q := &letters{}
		c := consumer(t, options(t, q), h)
		if d := c.Consume(t.Context(), event("p1")); d.Action != consume.DeadLettered {
			t.Errorf("%s: got %+v", name, d)
		}
		if l := q.only(t); l.Attempts != 1 || l.Reason == "" {
			t.Errorf("%s: got %+v", name, l)
		}
	}
}

func TestQueueDownIsNoAcknowledgement(t *testing.T) {
	q := &letters{down: true}
	n := 0
	c := consumer(t, options(t, q), func(context.Context, consume.Event) error { n++; return forbear.Terminal(errors.New("bad")) })
	d := c.Consume(t.Context(), event("e9"))
	if d.Acknowledge() || d.Action != consume.RetryAt {
		t.Fatalf("got %+v", d)
	}
	q.down = false
	if d = c.Consume(t.Context(), event("e9")); !d.Acknowledge() {
		t.Errorf("got %+v", d)
	}
	if l := q.only(t); n != 1 || l.Reason != "terminal" || l.Attempts != 1 {
		t.Errorf("%d runs of what is final; %+v", n, l)
	}
}

func TestRedriveRunsAgain(t *testing.T) {
	var bad atomic.Bool
	bad.Store(true)
	n := 0
	c := consumer(t, options(t, &letters{}), func(context.Context, consume.Event) error {
		if n++; bad.Load() {
			return forbear.Terminal(errors.New("bad"))
		}
		return nil
	})
	deliver(t, c, event("e1"))
	bad.Store(false)
	e := event("e1")
	e.Redrive = true
	for range 2 { // a second redrive is harmless
		if d := deliver(t, c, e); d.Action != consume.Ack || n != 2 {
			t.Errorf("got %+v, %d runs", d, n)
		}
	}
}

func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		o := options(t, &letters{})
		c := consumer(t, o, func(context.Context, consume.Event) error { n++; return nil })
		deliver(t, c, event("e6"))
		time.Sleep(7*24*time.Hour + 23*time.Hour)
		if swept, err := o.Store.Sweep(t.Context(), 10); err != nil || swept != 0 {
			t.Errorf("swept %d, %v", swept, err)
		}
		if d := deliver(t, c, event("e6")); !d.Duplicate || n != 1 {
			t.Errorf("got %+v, %d runs", d, n)
		}
	})
	for window, ok := range map[time.Duration]bool{6 * 24 * time.Hour: false, consume.MinWindow - 1: false, consume.MinWindow: true} {
		o := options(t, &letters{})
		o.Window = window
		if _, err := consume.New(func(context.Context, consume.Event) error { return nil }, o); (err == nil) != ok {
			t.Errorf("%v: got %v", window, err)
		}
	}
}

func TestDiedHandlersAreACrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		o := options(t, q)
		n := 0
		c := consumer(t, o, func(context.Context, consume.Event) error { n++; return nil })
		id := idempotency.ID{Scope: "event:g", Key: idempotency.Digest("/orders", "e1")}
		for i := range 5 { // claims without an end
			if _, err := o.Store.Claim(t.Context(), idempotency.Claim{ID: id, Fingerprint: "event", Owner: fmt.Sprint(i), Lease: time.Second, Retention: time.Hour, Rerun: true}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if d := c.Consume(t.Context(), event("e1")); d.Action != consume.DeadLettered || d.Reason != deadletter.ReasonCrashLoop || n != 0 {
			t.Errorf("got %+v, %d runs", d, n)
		}
	})
}

func TestPoisonBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		o := options(t, &letters{})
		o.InPlace = -1
		c := consumer(t, o, func(_ context.Context, e consume.Event) error {
			if e.ID == "p1" {
				return flaky()
			}
			n++
			return nil
		})
		start := time.Now()
		if d := c.Consume(t.Context(), event("p1")); d.Action != consume.RetryAt {
			t.Errorf("got %+v", d)
		}
		for i := range 100 {
			c.Consume(t.Context(), event(fmt.Sprint(i)))
		}
		if n != 100 || time.Since(start) > 0 {
			t.Errorf("%d runs in %v", n, time.Since(start))
		}
	})
}

func TestOrderOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		failed := false
		o := options(t, &letters{})
		o.InPlace, o.Ordered = -1, true
		c := consumer(t, o, func(_ context.Context, e consume.Event) error {
			if e.ID == "k1" && !failed {
				failed = true
				return flaky()
			}
			order = append(order, e.ID)
			return nil
		})
		var wg sync.WaitGroup
		for _, id := range []string{"k1", "k2", "x1"} {
			e := event(id)
			e.Key = id[:1]
			wg.Go(func() { deliver(t, c, e) })
			synctest.Wait()
		}
		wg.Wait()
		if got := strings.Join(order, " "); got != "x1 k1 k2" && got != "k1 x1 k2" {
			t.Errorf("order %q: another key must pass, and k2 must not", got)
		}
	})
}

func TestCloudEvents(t *testing.T) {
	q := &letters{}
	var got consume.Event
	n := 0
	o := options(t, q)
	o.InPlace = -1
	c := consumer(t, o, func(_ context.Context, e consume.Event) error {
		got, n = e, n+1
		if e.ID == "later" {
			return flaky()
		}
		return nil
	})
	srv := httptest.NewServer(consume.CloudEvents(c))
	defer srv.Close()
	post := func(body string, h map[string]string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range h {
			req.Header.Set(name, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp
	}
	binary := map[string]string{"ce-specversion": "1.0", "ce-id": "b1", "ce-source": "/s", "ce-type": "t", "Content-Type": "text/plain", "Authorization": "Bearer s3cret"}
	json := map[string]string{"Content-Type": "application/cloudevents+json; charset=utf-8"}
	if r := post("hello", binary); r.StatusCode != 204 || string(got.Data) != "hello" || got.ID != "b1" {
		t.Errorf("binary: %d, %+v", r.StatusCode, got)
	}
	if r := post("hello", binary); r.StatusCode != 204 || n != 1 {
		t.Errorf("duplicate: %d, %d runs", r.StatusCode, n)
	}
	if r := post(`{"specversion":"1.0","id":"s1","source":"/s","type":"t","data_base64":"AAH/"}`, json); r.StatusCode != 204 || string(got.Data) != "\x00\x01\xff" {
		t.Errorf("structured: %d, %+v", r.StatusCode, got)
	}
	if r := post(`{"specversion":"1.0","id":"later","source":"/s","type":"t","data":{}}`, json); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("retry: %d %v", r.StatusCode, r.Header)
	}
	if r := post(`[]`, map[string]string{"Content-Type": "application/cloudevents-batch+json"}); r.StatusCode != 415 {
		t.Errorf("batch: %d", r.StatusCode)
	}
	if r := post(`{"specversion":`, json); r.StatusCode != 204 {
		t.Errorf("undecodable: %d", r.StatusCode)
	}
	l := q.only(t)
	if l.Reason != deadletter.ReasonUndecodable || string(l.Payload) != `{"specversion":` {
		t.Errorf("got %+v", l)
	}
	for _, h := range l.Headers {
		if h.Name == "Authorization" {
			t.Error("a credential is in the dead letter")
		}
	}
}
