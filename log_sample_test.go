package forbear_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/reason"
)

// In a storm every retry that is sent is logged, refusals are thinned out, and
// lines plus what was left out is the number of refusals.
func TestSamplerLeavesOutRefusalsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := slog.New(slog.NewJSONHandler(&out, nil))
		s := &forbear.LogSampler{Lines: 5}
		var seen recorder
		r := quiet(t, forbear.Policy{Breaker: breaker.Policy{Disabled: true}}, forbear.WithRand(half),
			forbear.WithObserver(forbear.LogObserver(l, s)), forbear.WithObserver(seen.observer()))
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() { _ = r.Do(context.Background(), failing) })
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		s.Flush(l)
		sent, refused := 0, 0
		for _, e := range seen.events {
			if strings.HasPrefix(e, "retry ") {
				sent++
			}
			if strings.HasSuffix(e, "budget_exhausted") {
				refused++
			}
		}
		logged, lines, left := 0, 0, 0
		for line := range strings.Lines(out.String()) {
			var e struct {
				Msg, Reason string
				Left        int `json:"left_out"`
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			switch {
			case e.Msg == "retry":
				logged++
			case e.Msg == "retries stopped" && e.Reason == "budget_exhausted":
				lines++
			case e.Reason == "budget_exhausted":
				left += e.Left
			}
		}
		if sent == 0 || logged != sent {
			t.Errorf("%d of %d retries that were sent are logged", logged, sent)
		}
		if refused < 100 || lines+left != refused || lines > refused/5 {
			t.Errorf("%d refusals: %d lines and %d left out", refused, lines, left)
		}
	})
}

// A certificate failure is never sampled away.
func TestSamplerKeepsCertificates(t *testing.T) {
	var out bytes.Buffer
	o := forbear.LogObserver(slog.New(slog.NewJSONHandler(&out, nil)), &forbear.LogSampler{Lines: 1})
	for range 20 {
		o.Stopped(t.Context(), forbear.Stopped{Reason: reason.Certificate})
	}
	if n := strings.Count(out.String(), `"level":"ERROR"`); n != 20 {
		t.Errorf("%d lines, want 20", n)
	}
}

// A log at a disabled level costs at most two allocations for a whole failed
// call more than no log at all.
func TestDisabledLogAllocatesAtMostTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		measure := func(opts ...forbear.Option) float64 {
			p := forbear.Policy{Breaker: breaker.Policy{Disabled: true}}
			r := quiet(t, p, append(opts, forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)))...)
			ctx, failure := requestContext(t), forbear.Retryable(errFlaky, forbear.Hint{})
			return testing.AllocsPerRun(100, func() {
				_ = r.Do(ctx, func(context.Context) error { return failure })
			})
		}
		off := slog.New(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelError}))
		without, with := measure(), measure(forbear.WithObserver(forbear.LogObserver(off, nil)))
		if with > without+2 {
			t.Errorf("%v allocations with a disabled log, %v without", with, without)
		}
		t.Logf("%v allocations with a disabled log, %v without", with, without)
	})
}
