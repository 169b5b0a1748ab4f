package promretry_test

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/promretry"
)

// stage is a service with a dependency for each kind of trouble, under traffic
// in real time. Once down is set, each has its own.
type stage struct {
	m    *promretry.Metrics
	down atomic.Bool
	wg   sync.WaitGroup
	ctx  context.Context
}

// pace is the time between two calls of one worker.
const pace = 25 * time.Millisecond

func newStage() *stage { return &stage{m: promretry.New(promretry.WithService("checkout"))} }

// serve returns the address where Prometheus finds the metrics.
func (s *stage) serve(t *testing.T) string {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(s.m)
	// What forbear serve says of its deliveries, under the names of its collector.
	for _, name := range []string{"webhook_oldest_due_seconds", "webhook_outbox_oldest_seconds", "webhook_deliveries_unreadable", "webhook_endpoints_unreadable"} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name}, func() float64 {
			if s.down.Load() {
				return 3600
			}
			return 0
		}))
	}
	for name, of := range map[string]prometheus.Labels{"alert_notifier_healthy": {"notifier": "pager"}, "webhook_part_healthy": {"part": "outbox"}, "policy_file_in_charge": nil} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, ConstLabels: of}, func() float64 {
			if s.down.Load() {
				return 0
			}
			return 1
		}))
	}
	srv := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// quick is a policy whose waits fit a test in seconds.
func quick() forbear.Policy {
	return forbear.Policy{
		Backoff: forbear.Backoff{Base: time.Millisecond, Cap: 4 * time.Millisecond},
		Budget:  budget.Policy{Window: time.Second},
	}
}

// calls has n workers call do until the test is over.
func (s *stage) calls(t *testing.T, n int, do func(ctx context.Context, down bool)) {
	t.Helper()
	ctx := s.ctx
	incoming := s.m.CountIncoming(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		do(r.Context(), s.down.Load())
	}))
	for range n {
		s.wg.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://checkout.test/", nil)
					incoming.ServeHTTP(nil, r)
				}
			}
		})
	}
}

// shaky fails one first attempt in fifty, and every attempt when down.
func shaky(n *atomic.Int64, down bool) func(context.Context) error {
	return func(ctx context.Context) error {
		_, retry := forbear.AttemptFrom(ctx)
		if down || !retry && n.Add(1)%50 == 0 {
			return forbear.Retryable(errFlaky, forbear.Hint{})
		}
		return nil
	}
}

func (s *stage) start(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx = ctx
	t.Cleanup(func() { cancel(); s.wg.Wait() })
	noBreaker := breaker.Policy{Disabled: true}
	// Calls of each: with one count for all, one of them might have every failure.
	var paid, stocked, searched, sent, entered atomic.Int64

	p := quick()
	p.Breaker = breaker.Policy{MinCalls: 10, OpenFor: 300 * time.Millisecond}
	seconds := func(dependency string) forbear.Option {
		return forbear.WithWaiver(forbear.Waiver{Rule: "INTG-STD-033", Dependency: dependency, Reason: "an outage of seconds"})
	}
	payments := retryer(t, s.m, "payments", p, seconds("payments"))
	s.calls(t, 1, func(ctx context.Context, down bool) { _ = payments.Do(ctx, shaky(&paid, down)) })

	// When down, it fails in the first half of each second.
	p = quick()
	p.Breaker = breaker.Policy{Window: 20, WindowTime: time.Second, OpenFor: 100 * time.Millisecond}
	stock := retryer(t, s.m, "stock", p, seconds("stock"))
	s.calls(t, 1, func(ctx context.Context, down bool) {
		_ = stock.Do(ctx, shaky(&stocked, down && time.Now().Nanosecond() < 5e8))
	})

	// Somebody replaced the budget and switched the breaker off.
	p = quick()
	p.Breaker = noBreaker
	search := retryer(t, s.m, "search", p, forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)))
	s.calls(t, 4, func(ctx context.Context, down bool) { _ = search.Do(ctx, shaky(&searched, down)) })

	peer := retryer(t, s.m, "peer", quick())
	s.calls(t, 1, func(ctx context.Context, down bool) {
		_ = peer.Do(ctx, func(context.Context) error {
			if down {
				return x509.UnknownAuthorityError{}
			}
			return nil
		})
	})

	orders := retryer(t, s.m, "orders", forbear.Policy{Kind: forbear.Event}, forbear.WithDeadLetter(queue{}))
	s.calls(t, 1, func(ctx context.Context, down bool) {
		_ = orders.Do(ctx, func(context.Context) error {
			if down {
				return forbear.Terminal(errFlaky)
			}
			return nil
		})
	})

	p = quick()
	p.Breaker = noBreaker
	sdk := retryer(t, s.m, "sdk", p)
	s.calls(t, 1, func(ctx context.Context, down bool) {
		_ = sdk.Do(ctx, func(ctx context.Context) error {
			layer.NoteSend(ctx, 1)
			if down {
				layer.NoteSend(ctx, 1) // once more, unasked
			}
			return shaky(&sent, down)(ctx)
		})
	})

	p = quick()
	p.MinAttempt = 100 * time.Millisecond
	hurry := retryer(t, s.m, "hurry", p)
	s.calls(t, 1, func(ctx context.Context, down bool) {
		left := time.Second
		if down {
			left = 20 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		_ = hurry.Do(ctx, func(context.Context) error { return nil })
	})

	p = quick()
	p.MaxConcurrent, p.Breaker = 2, noBreaker
	narrow := retryer(t, s.m, "narrow", p)
	s.calls(t, 3, func(ctx context.Context, down bool) {
		if !down && entered.Add(1)%3 != 0 {
			return
		}
		_ = narrow.Do(ctx, func(context.Context) error {
			if down {
				time.Sleep(3 * pace)
			}
			return nil
		})
	})

	till, keys := newReceiver(t, s.m), atomic.Int64{}
	observe := s.m.Idempotency("till")
	s.calls(t, 1, func(_ context.Context, down bool) {
		key := strconv.FormatInt(keys.Add(1), 10)
		var twice sync.WaitGroup
		for range 2 {
			twice.Go(func() { till.post("/pay", key, "100") })
		}
		twice.Wait()
		till.consumer.Consume(context.Background(), consume.Event{ID: key, Source: "shop"})
		if down {
			till.post("/lost", key+"-lost", "100")
			observe(idempotency.Event{Result: idempotency.StoreError, Attempt: 1})
		}
	})

	login := retryer(t, s.m, "login", quick())
	s.calls(t, 1, func(ctx context.Context, down bool) {
		if down {
			edge.Refreshed(ctx, login, errFlaky)
		}
	})
}
