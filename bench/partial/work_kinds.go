package main

import (
	"container/heap"
	"context"
	"database/sql"
	"errors"
	"net/netip"
	"sync"
	"time"

	_ "modernc.org/sqlite"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/batch"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

var hurry = forbear.Backoff{Base: 50 * time.Millisecond}

// optionsOf returns those of a run with policy p. Waits are the middle of what they may
// be, so that two runs can be compared by a few late pieces. Where the breaker is
// off, no budget is in the way either.
func optionsOf(p forbear.Policy) []forbear.Option {
	o := []forbear.Option{forbear.WithoutLog(), forbear.WithRand(func() float64 { return 0.5 })}
	if p.Breaker.Disabled {
		o = append(o, forbear.WithBudget(budget.NewTokenBucket(1<<40, 1)))
	}
	return o
}

// deliver delivers messages as forbear serve does.
func deliver(ctx context.Context, url string, p forbear.Policy) error {
	path, remove, err := tempFile("forbear.db")
	if err != nil {
		return err
	}
	defer remove()
	w, r := sqlstore.SQLiteNames(path)
	write, err := sql.Open("sqlite", w)
	if err != nil {
		return err
	}
	defer write.Close()
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil {
		return err
	}
	read, err := sql.Open("sqlite", r)
	if err != nil {
		return err
	}
	defer read.Close()
	store := sqlstore.SQLite(write, read)
	defer store.Close()
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	d, err := dispatch.New(dispatch.Config{
		Store: store.Webhooks(), Alerts: store.DeadLetters(), Options: optionsOf(p),
		Guard: webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		return err
	}
	if _, err := d.PutEndpoint(ctx, webhook.Endpoint{ID: "a", URL: url, Concurrency: atOnce, Policy: p}); err != nil {
		return err
	}
	msgs := make([]webhook.Message, pieces)
	for i := range msgs {
		msgs[i] = webhook.Message{ID: piece(i), Endpoints: []string{"a"}, Body: []byte(`{}`)}
	}
	if _, err := d.Accept(ctx, msgs...); err != nil {
		return err
	}
	return d.Run(ctx)
}

// runBatch does the pieces as items.
func runBatch(ctx context.Context, url string, p forbear.Policy) error {
	p.Kind, p.Backoff = forbear.Batch, hurry
	r, err := forbear.New("batch", p, optionsOf(p)...)
	if err != nil {
		return err
	}
	attempts := map[int]int{}
	var mu sync.Mutex
	_, err = batch.Run(ctx, r, func(yield func(int) bool) {
		for i := range pieces {
			if !yield(i) {
				return
			}
		}
	}, func(ctx context.Context, i int) error {
		mu.Lock()
		attempts[i]++
		n := attempts[i]
		mu.Unlock()
		return post(ctx, url, piece(i), n)
	}, batch.Options[int]{Concurrency: atOnce})
	if errors.Is(err, batch.ErrFailed) || errors.Is(err, context.Canceled) { // all attempts of some have failed
		return nil
	}
	return err
}

// letters drops what has used its attempts.
type letters struct{}

func (letters) Put(context.Context, deadletter.Letter) error { return nil }

// handleEvents brings the pieces to a consumer, as a broker does.
func handleEvents(ctx context.Context, url string, p forbear.Policy) error {
	p.Kind, p.Backoff = forbear.Event, hurry
	r, err := forbear.New("events", p, append(optionsOf(p), forbear.WithCallerDeadLetter())...)
	if err != nil {
		return err
	}
	c, err := consume.New(func(ctx context.Context, e consume.Event) error {
		return post(ctx, url, e.ID, consume.Attempt(ctx))
	}, consume.Options{Group: "g", Store: &memstore.Idempotency{}, DLQ: letters{}, Retryer: r})
	if err != nil {
		return err
	}
	b := &broker{}
	for i := range pieces {
		heap.Push(&b.waiting, event{consume.Event{ID: piece(i), Source: "/pieces"}, time.Time{}})
	}
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for c.Ready(ctx) == nil {
				b.hand(ctx, c)
			}
		})
	}
	wg.Wait()
	return nil
}

// broker brings events, those that are to come again when they are due.
type broker struct {
	mu      sync.Mutex
	waiting events
}

type event struct {
	consume.Event
	at time.Time
}

// hand brings one event that is due to the consumer.
func (b *broker) hand(ctx context.Context, c *consume.Consumer) {
	b.mu.Lock()
	if len(b.waiting) == 0 || b.waiting[0].at.After(time.Now()) {
		b.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		return
	}
	e := heap.Pop(&b.waiting).(event)
	b.mu.Unlock()
	if d := c.Consume(ctx, e.Event); !d.Acknowledge() {
		b.mu.Lock()
		heap.Push(&b.waiting, event{e.Event, d.At})
		b.mu.Unlock()
	}
}

// events implements [heap.Interface], the earliest first.
type events []event

func (l events) Len() int           { return len(l) }
func (l events) Less(i, j int) bool { return l[i].at.Before(l[j].at) }
func (l events) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *events) Push(x any)        { *l = append(*l, x.(event)) }

func (l *events) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
