package dispatch_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge/partial"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// stream is what became of messages that came one by one to an endpoint.
type stream struct {
	messages, sends int
	late            []time.Duration // of those that arrived
	hour            int             // arrived in the first hour
	letters         int64
}

func (s *stream) at(share float64) time.Duration {
	slices.SortFunc(s.late, cmp.Compare)
	if n := int(share * float64(s.messages)); n < len(s.late) {
		return s.late[n].Round(time.Second)
	}
	return -1
}

func (s *stream) String() string {
	return fmt.Sprintf("%4d arrived (%4d in the first hour), %4d letters, %.2f sends a message, %.2f a delivery; half within %v, 90 %% %v",
		len(s.late), s.hour, s.letters, float64(s.sends)/float64(s.messages), float64(s.sends)/float64(max(len(s.late), 1)), s.at(.5), s.at(.9))
}

// streams sends n messages, one each 2 s, to an endpoint that takes so long for each
// attempt and fails this share, and watches it for a while.
func streams(t *testing.T, n int, takes time.Duration, share float64, e webhook.Endpoint, watch time.Duration) *stream {
	t.Helper()
	return drawn(t, "m", n, takes, share, e, watch)
}

// drawn is streams with the luck that belongs to the prefix of its messages.
func drawn(t *testing.T, prefix string, n int, takes time.Duration, share float64, e webhook.Endpoint, watch time.Duration) *stream {
	t.Helper()
	w := &partial.Work{Share: partial.Always(share)}
	out := &stream{messages: n}
	synctest.Test(t, func(t *testing.T) {
		w.Begin()
		began := time.Now()
		var mu sync.Mutex
		sent := map[string]time.Time{}
		r := &receiver{takes: takes, respond: func(_ int, req *http.Request) int {
			mu.Lock()
			defer mu.Unlock()
			id := req.Header.Get("Webhook-Id")
			if !w.Try(t, id) {
				return 503
			}
			out.late = append(out.late, time.Since(sent[id]))
			if time.Since(began) < time.Hour {
				out.hour++
			}
			return 200
		}}
		e.ID, e.URL = "a", "https://example.com/"
		opts := []forbear.Option{forbear.WithoutLog()}
		if e.Policy.Breaker.Disabled { // the sender without protection
			opts = append(opts, forbear.WithBudget(budget.NewTokenBucket(1<<40, 1)))
		}
		s := &memstore.Store{}
		d := run(t, s, dispatch.Config{Transport: r, Options: opts, Poll: time.Minute}, e)
		for i := range n {
			id := fmt.Sprint(prefix, i)
			mu.Lock()
			sent[id] = time.Now()
			mu.Unlock()
			if _, err := d.Accept(t.Context(), webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte(`{}`)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		time.Sleep(watch)
		_, out.letters = raised(t, s)
	})
	out.sends = w.Sends
	return out
}

// unprotected is a sender that keeps to the schedule and has neither budget nor breaker.
var unprotected = webhook.Endpoint{Policy: forbear.Policy{Breaker: breaker.Policy{Disabled: true}}}

// quickly is how long most receivers take.
const quickly = 10 * time.Millisecond

// An endpoint that takes two of five messages gets most of them within the hour, behind a
// breaker that hardly ever closes, and is sent no more for each than without one. One
// that takes nothing is sent next to nothing.
func TestMostlyFailing(t *testing.T) {
	race.TooSlow(t, "TestMixedStreamIsNotSlowed has such an endpoint, too")
	n := ringtest.Size(300, 600)
	got, ideal := streams(t, n, quickly, 0.6, webhook.Endpoint{}, time.Hour), streams(t, n, quickly, 0.6, unprotected, time.Hour)
	t.Logf("%v\nwithout protection: %v", got, ideal)
	if got.hour < ideal.hour*6/10 || got.sends > ideal.sends*105/100 {
		t.Errorf("%d of %d arrived, with %d and %d sends", got.hour, ideal.hour, got.sends, ideal.sends)
	}
	if dead := streams(t, n, quickly, 1, webhook.Endpoint{}, time.Hour); dead.sends > 60 {
		t.Errorf("%d sends to an endpoint that takes nothing", dead.sends)
	}
}

// An endpoint that takes its time, and three of ten messages, gets several at once:
// single ones would be a third of that.
func TestMostlyFailingAndSlow(t *testing.T) {
	race.TooSlow(t, "TestManyGoDownAtOnce has such endpoints, too")
	got := streams(t, 1200, 8*time.Second, 0.7, webhook.Endpoint{}, time.Hour)
	if t.Log(got); len(got.late) < 320 {
		t.Errorf("%d arrived", len(got.late))
	}
}

// TestSoakMostlyFailing is the table of bench/delivery.
func TestSoakMostlyFailing(t *testing.T) {
	ringtest.OnlyNightly(t, "a table")
	for _, share := range []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1} {
		t.Logf("%.0f %%: %v", 100*share, streams(t, 1800, quickly, share, webhook.Endpoint{}, 25*time.Hour))
		t.Logf("without protection: %v", streams(t, 1800, quickly, share, unprotected, 25*time.Hour))
	}
}

// TestSoakAfterTraffic shows how late the last message arrives of 700 to an endpoint that
// fails half, for fifty draws of luck: where chance has made most of the latest attempts
// fail when the traffic ends, the rest keeps to the floor of R-7.
func TestSoakAfterTraffic(t *testing.T) {
	ringtest.OnlyNightly(t, "a table of fifty draws")
	var got, ideal []time.Duration
	for i := range 50 {
		draw := fmt.Sprint("draw", i, "-")
		got = append(got, slices.Max(drawn(t, draw, 700, quickly, 0.5, webhook.Endpoint{}, time.Hour).late))
		ideal = append(ideal, slices.Max(drawn(t, draw, 700, quickly, 0.5, unprotected, time.Hour).late))
	}
	slices.Sort(got)
	slices.Sort(ideal)
	for _, at := range []int{24, 44, 49} {
		t.Logf("in %d of 50 the last is there within %v (%v)", at+1, got[at].Round(time.Second), ideal[at].Round(time.Second))
	}
	if got[24] > 2*ideal[24] || got[49] > 20*time.Minute {
		t.Errorf("the last is there within %v in half of the draws and %v in all, without protection %v", got[24], got[49], ideal[24])
	}
}
