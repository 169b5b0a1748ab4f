package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
)

// gate holds up what is sent alone, until it is opened.
type gate struct {
	trips

	waiting chan struct{} // one for each that waits
	opened  chan struct{}
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.n.Add(1)
		select {
		case g.waiting <- struct{}{}:
			<-g.opened
		default:
		}
		return next(ctx, cmd)
	}
}

// What comes while others are under way goes as one pipeline. In it each claim and
// completion gets what it would get alone, from a server that has forgotten the
// scripts, too.
func TestPipelineOfClaims(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		t.Run(fmt.Sprint("forgotten ", forgotten), func(t *testing.T) {
			s := startRedis(t)
			c := client(t, s)
			i, err := redisstore.NewIdempotency(t.Context(), c, redisstore.IdempotencyOptions{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			stored := idempotency.Response{Status: 201, Body: []byte("stored \x00\xff")}
			completed(t, i, "done", stored)
			claimed(t, i, claim("held"), idempotency.Acquired)
			if err := i.Hold(t.Context(), token(claim("held")), "why"); err != nil {
				t.Fatal(err)
			}
			other := claim("done")
			other.Fingerprint = "another"
			var mu sync.Mutex
			got := map[string]idempotency.ClaimOutcome{}
			ask := func(name string, c idempotency.Claim) {
				v, err := i.Claim(context.Background(), c)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if v.Outcome == idempotency.Replay && (v.Record.Response == nil || string(v.Record.Response.Body) != string(stored.Body)) {
					t.Errorf("%s: replays %+v", name, v.Record.Response)
				}
				mu.Lock()
				defer mu.Unlock()
				got[name] = v.Outcome
			}
			want := map[string]idempotency.ClaimOutcome{"done": idempotency.Replay, "other": idempotency.Mismatch, "held": idempotency.Unknown}
			list := []func(){
				func() { ask("done", claim("done")) },
				func() { ask("other", other) },
				func() { ask("held", claim("held")) },
				func() {
					lost := token(claim("done"))
					lost.Owner = "another"
					if err := i.Complete(context.Background(), lost, stored, time.Hour); !errors.Is(err, idempotency.ErrFenced) {
						t.Errorf("a completion without a claim: %v", err)
					}
				},
			}
			for n := range 40 {
				name := fmt.Sprint("fresh ", n)
				want[name] = idempotency.Acquired
				list = append(list, func() {
					ask(name, claim(name))
					if err := i.Complete(context.Background(), token(claim(name)), idempotency.Response{Status: 200, Body: []byte(name)}, time.Hour); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			if forgotten {
				if err := c.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			g := &gate{waiting: make(chan struct{}, 2), opened: make(chan struct{})}
			c.AddHook(g)
			var wg sync.WaitGroup
			for n := range 2 {
				wg.Go(func() { ask(fmt.Sprint("gate ", n), claim(fmt.Sprint("gate ", n))) })
				want[fmt.Sprint("gate ", n)] = idempotency.Acquired
				for len(g.waiting) <= n { // or the second would go along with the first
					time.Sleep(time.Millisecond)
				}
			}
			var begun atomic.Int64
			for _, f := range list {
				wg.Go(func() { begun.Add(1); f() })
			}
			for begun.Load() < int64(len(list)) {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond) // most of them have come
			close(g.opened)
			wg.Wait()
			for name, outcome := range want {
				if got[name] != outcome {
					t.Errorf("%s: outcome %d, want %d", name, got[name], outcome)
				}
			}
			for n := range 40 {
				name := fmt.Sprint("fresh ", n)
				rec, err := i.Get(t.Context(), claim(name).ID)
				if err != nil || rec.State != idempotency.Completed || string(rec.Response.Body) != name {
					t.Errorf("%s: %+v, %v", name, rec, err)
				}
			}
			if n := g.n.Load(); !forgotten && n >= 100 { // 126, each alone
				t.Errorf("%d round trips for 86 scripts and 40 reads", n)
			}
		})
	}
}
