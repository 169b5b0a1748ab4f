package gateway_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/health"
)

func good(context.Context) error { return nil }

func terminal(context.Context) error { return forbear.Terminal(errors.New("no")) }

// The worst comes first, each with its words; what is well follows by name.
func TestOrderOfTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stats, _, made := watched(t)
		stats.SetDeliveries(func(name string) *gateway.DeliveryStatus {
			switch name {
			case "e held":
				return &gateway.DeliveryStatus{Hold: "credential"}
			case "o disabled", "p disabled long ago":
				return &gateway.DeliveryStatus{Hold: "disabled", Held: "the receiver is gone"}
			}
			return nil
		}, func() []string { return []string{"e held", "o disabled", "p disabled long ago"} })
		made("b well", quietBreaker)
		made("a well", quietBreaker)
		_ = made("f certificate", quietBreaker).Do(t.Context(), func(context.Context) error { return x509.UnknownAuthorityError{} })
		made("g open", forbear.Policy{}).Breaker().Force(breaker.Open, "jane", time.Now())
		due := made("d due", forbear.Policy{})
		due.Breaker().Follow(time.Now())
		sick := made("i sick", forbear.Policy{Disabled: true, Breaker: breaker.Policy{Disabled: true}, Health: health.Policy{MinSuccess: 0.5}})
		rare := made("n rare", quietBreaker)
		_ = rare.Do(t.Context(), flaky(9, "a"))
		for range 150 {
			_ = rare.Do(t.Context(), good)
		}
		time.Sleep(time.Minute)
		made("e held", quietBreaker)
		for name, calls := range map[string]int{"o disabled": 1, "p disabled long ago": 0} {
			r := made(name, forbear.Policy{})
			for range calls {
				_ = r.Do(t.Context(), terminal)
			}
			r.Breaker().Force(breaker.Open, "jane", time.Now())
		}
		made("c budget", forbear.Policy{}).Breaker().BudgetRefused(time.Now())
		failing := made("k failing", quietBreaker)
		_ = failing.Do(t.Context(), flaky(9, "a"))
		for range 20 {
			_ = sick.Do(t.Context(), flaky(1, "a"))
		}
		made("m forced", forbear.Policy{}).Breaker().Force(breaker.Closed, "jane", time.Now())
		refusing, retried := made("l refusing", quietBreaker), made("j retried", quietBreaker)
		for range 12 {
			_ = refusing.Do(t.Context(), terminal)
			_ = retried.Do(t.Context(), flaky(1, "a"))
		}
		made("h open", forbear.Policy{}).Breaker().Follow(time.Now())
		var got []string
		for _, d := range stats.Page(time.Now(), gateway.StatusQuery{ByTrouble: true, Limit: 100}).Dependencies {
			got = append(got, fmt.Sprintf("%s: %d %s", d.Dependency, d.Trouble.Rank, d.Trouble.Why))
		}
		want := []string{
			"f certificate: 11 certificate refused: the server's certificate is signed by an unknown authority",
			"g open: 10 breaker held open by hand",
			"h open: 10 breaker open",
			"d due: 9 breaker open: the next call is a probe",
			"e held: 8 deliveries held: credential",
			"o disabled: 8 endpoint disabled: the receiver is gone",
			"c budget: 7 retry budget exhausted",
			"i sick: 6 health gate closed",
			"k failing: 5 1 of 1 calls failed in 5 minutes",
			"j retried: 4 12 retries of 12 calls in 5 minutes",
			"m forced: 3 breaker held closed by hand",
			"p disabled long ago: 1 endpoint disabled: the receiver is gone",
			"a well: 0 ", "b well: 0 ", "l refusing: 0 ", "n rare: 0 ",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		time.Sleep(20 * time.Minute)
		for _, d := range stats.Status(time.Now()).Dependencies {
			if (d.Dependency == "f certificate" || d.Dependency == "k failing" || d.Dependency == "j retried") && d.Trouble != (gateway.Trouble{}) {
				t.Errorf("twenty minutes later: %s has %+v", d.Dependency, d.Trouble)
			}
		}
	})
}

// The hour has a value for each minute, the one under way last, whoever looks at it or not.
func TestHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stats, h, made := watched(t)
		r, began := made("payments", quietBreaker), time.Now()
		made("idle", quietBreaker)
		minute := func(calls int) {
			for range calls {
				_ = r.Do(t.Context(), good)
			}
			for range 6 {
				time.Sleep(10 * time.Second)
				stats.Sample(time.Now())
			}
		}
		minute(3)
		minute(0)
		_ = r.Do(t.Context(), flaky(1, "a"))
		_ = r.Do(t.Context(), terminal)
		minute(1)
		for range 2 {
			_ = r.Do(t.Context(), good)
		}
		hour := func() *gateway.Hour { return detail(t, h, "payments").Hour }
		got := hour()
		ends := func(series []uint32) []uint32 { return series[len(series)-4:] }
		if !slices.Equal(ends(got.Calls), []uint32{3, 0, 3, 2}) || !slices.Equal(ends(got.Retries), []uint32{0, 0, 1, 0}) ||
			!slices.Equal(ends(got.Failed), []uint32{0, 0, 1, 0}) || !slices.Equal(ends(got.Saved), []uint32{0, 0, 1, 0}) || len(got.Calls) != 60 {
			t.Errorf("got %+v", got)
		}
		if want := began.Add(3*time.Minute - 59*time.Minute); !got.From.Equal(want) || got.Step != gateway.Duration(time.Minute) {
			t.Errorf("from %v in steps of %v, want %v", got.From, got.Step, want)
		}
		if got := stats.Page(time.Now(), gateway.StatusQuery{Limit: 5}).Dependencies; got[0].Hour != nil || got[1].Hour == nil {
			t.Errorf("idle: got %+v; payments: got %+v", got[0].Hour, got[1].Hour)
		}
		if got := stats.Status(time.Now()).Dependencies; got[1].Hour != nil {
			t.Error("a status of all dependencies has their hours")
		}
		for range 55 {
			minute(0)
		}
		minute(7) // into the place of the values of an hour ago
		minute(0)
		if got := hour(); got.Calls[0] != 0 || got.Calls[1] != 3 || got.Calls[2] != 2 || got.Calls[58] != 0 || got.Calls[57] != 7 {
			t.Errorf("an hour later: got %v", got.Calls)
		}
		for range 3 {
			minute(0)
		}
		minute(1) // over idle minutes, in whose places are values of an hour ago
		if got := hour(); got.Calls[57] != 0 || got.Calls[58] != 1 || got.Calls[54] != 0 || got.Calls[53] != 7 {
			t.Errorf("after idle minutes: got %v", got.Calls)
		}
		for range 61 {
			minute(0)
		}
		if got := hour(); got != nil {
			t.Errorf("after an idle hour: got %+v", got)
		}
	})
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stats, h, made := watched(t)
		r := made("payments", quietBreaker)
		if got := detail(t, h, "payments").Latency; got != nil {
			t.Errorf("without an attempt: got %v", got)
		}
		for i := range 100 {
			_ = r.Do(t.Context(), func(context.Context) error {
				took := 20 * time.Millisecond
				if i > 97 {
					took = 3 * time.Second
				}
				time.Sleep(took)
				return nil
			})
		}
		near := func(got gateway.Duration, want time.Duration) bool { // half a bin
			return time.Duration(got) > want*15/16 && time.Duration(got) < want*17/16
		}
		got := detail(t, h, "payments").Latency
		if got == nil || !near(got.P50, 20*time.Millisecond) || !near(got.P99, 3*time.Second) {
			t.Errorf("got %v", got)
		}
		time.Sleep(5 * time.Minute)
		stats.Sample(time.Now())
		if detail(t, h, "payments").Latency == nil {
			t.Error("the window before is forgotten")
		}
		time.Sleep(10 * time.Minute)
		if got := detail(t, h, "payments").Latency; got != nil {
			t.Errorf("a quarter of an hour later: got %v", got)
		}
		_ = r.Do(t.Context(), good)
		time.Sleep(10 * time.Minute)
		if got := detail(t, h, "payments").Latency; got != nil {
			t.Errorf("ten minutes later, without a look: got %v", got)
		}
	})
}

// A duration is written as the delivery API writes it, and read back.
func TestDurationIsText(t *testing.T) {
	text, err := json.Marshal(gateway.LatencyStatus{P50: gateway.Duration(1500 * time.Millisecond)})
	if want := `{"p50":"1.5s","p99":"0s"}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	var back gateway.LatencyStatus
	if err := json.Unmarshal(text, &back); err != nil || back.P50 != gateway.Duration(1500*time.Millisecond) {
		t.Errorf("got %v, %v", back, err)
	}
}

// Readers, calls and moves of a breaker do not wait for each other.
func TestReadersAndCallsAtOnce(t *testing.T) {
	stats, h, made := watched(t)
	r := made("payments", forbear.Policy{Backoff: forbear.Backoff{Base: time.Microsecond, Cap: time.Microsecond}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				_ = r.Do(t.Context(), flaky(1, "a"))
				_ = r.Do(t.Context(), terminal)
			}
		})
		wg.Go(func() {
			for i := range 200 {
				r.Breaker().Force(breaker.State(i%2), "jane", time.Now())
				stats.Sample(time.Now().Add(time.Duration(i) * time.Minute))
				stats.Page(time.Now(), gateway.StatusQuery{ByTrouble: true, Limit: 5})
				detail(t, h, "payments")
			}
		})
	}
	wg.Wait()
	if d := detail(t, h, "payments"); len(d.Calls) == 0 || len(d.Moves) != 32 {
		t.Errorf("got %d calls and %d moves", len(d.Calls), len(d.Moves))
	}
}

// A call that succeeds at once costs the observer no allocation.
func TestStatsAllocateNothingOnSuccess(t *testing.T) {
	_, _, made := watched(t)
	r, ctx := made("payments", forbear.Policy{}), t.Context()
	if n := testing.AllocsPerRun(1000, func() { _ = r.Do(ctx, good) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
