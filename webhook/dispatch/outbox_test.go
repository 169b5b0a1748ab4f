package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// outbox is a store with an outbox: a memory store, to which rows come.
type outbox struct {
	*memstore.Store
	mu    sync.Mutex
	rows  []webhook.Message
	looks []time.Time
}

func (o *outbox) insert(m webhook.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows = append(o.rows, m)
}

func (o *outbox) looked() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.looks)
}

// Relay implements store.Store.
func (o *outbox) Relay(ctx context.Context, _ int, admit func(*webhook.Message) (map[string]bool, error)) (done store.RelayResult, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks = append(o.looks, time.Now())
	for _, m := range o.rows {
		ordered, err := admit(&m)
		if err != nil {
			return done, err
		}
		if _, err := o.Accept(ctx, []webhook.Message{m}, ordered); err != nil {
			return done, err
		}
		done.Rows++
		done.Accepted++
	}
	o.rows = nil
	return done, nil
}

// A row of a quiet outbox is found within a quarter of Poll and sent right then, without
// another look at the store. Behind it the outbox is watched ten times as closely, for
// five seconds.
func TestOutboxIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acme := &receiver{respond: always(200)}
		o := &outbox{Store: &memstore.Store{}}
		begin := time.Now()
		d, err := dispatch.New(dispatch.Config{
			Store: o, Alerts: o, Logger: quiet, Poll: 4 * time.Second, Transport: acme,
		})
		if err == nil {
			_, err = d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		time.Sleep(10*time.Second + time.Millisecond)
		quietLooks := o.looked()
		inserted := []time.Time{time.Now()}
		o.insert(webhook.Message{ID: "first", Endpoints: []string{"a"}})
		time.Sleep(2 * time.Second)
		inserted = append(inserted, time.Now())
		o.insert(webhook.Message{ID: "second", Endpoints: []string{"a"}})
		time.Sleep(20 * time.Second)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		sent := acme.sent
		if len(sent) != 2 {
			t.Fatalf("sent %d messages", len(sent))
		}
		for i, most := range []time.Duration{time.Second, 100 * time.Millisecond} {
			if late := sent[i].Sub(inserted[i]); late > most+10*time.Millisecond {
				t.Errorf("message %d went out after %v, want at most %v", i, late, most)
			}
		}
		if quietLooks < 10 || quietLooks > 12 {
			t.Errorf("%d looks at a quiet outbox in 10 s, want one each second", quietLooks)
		}
		last := slices.IndexFunc(o.looks, func(at time.Time) bool { return at.Sub(begin) > 18*time.Second })
		if rest := o.looks[last:]; len(rest) > 16 {
			t.Errorf("%d looks in the last 14 s", len(rest))
		}
	})
}

// stuck is an outbox whose rows cannot be moved.
type stuck struct{ *memstore.Store }

func (stuck) Relay(context.Context, int, func(*webhook.Message) (map[string]bool, error)) (done store.RelayResult, err error) {
	done.Stuck = []error{errors.New("row 7 is kept")}
	return done, nil
}

// Rows that stay are in the log, once a minute.
func TestRowsThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{&memstore.Store{}}
		var log strings.Builder
		d, err := dispatch.New(dispatch.Config{Store: s, Alerts: s, Logger: slog.New(slog.NewTextHandler(&log, nil)), Transport: &receiver{respond: always(200)}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		time.Sleep(5*time.Minute + time.Second)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "row 7 is kept"); n < 5 || n > 6 {
			t.Errorf("%d lines: %s", n, log.String())
		}
	})
}
