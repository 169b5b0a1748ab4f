package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/waitform"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// Deliveries that were taken ahead wait in memory behind slow ones. One whose
// lease leaves no time for a whole attempt is given back, not sent: another
// process may be sending it already. (A process that was frozen is the same,
// see TestFrozenProcess.)
func TestNothingIsSentUnderAnOldLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sends := map[string]int{}
		r := &receiver{takes: 9500 * time.Millisecond}
		r.respond = func(_ int, req *http.Request) int {
			mu.Lock()
			defer mu.Unlock()
			sends[req.Header.Get("Webhook-Id")]++
			return 200
		}
		s := &memstore.Store{}
		d := run(t, s, dispatch.Config{Transport: r}, webhook.Endpoint{ID: "a", URL: "https://example.com/", Concurrency: 1})
		var msgs []webhook.Message
		for i := range 5 {
			msgs = append(msgs, webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"a"}, Body: []byte("{}")})
		}
		if _, err := d.Accept(t.Context(), msgs...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		// Five were taken at once under leases of 20 s. The second's turn comes
		// with 10.5 s left, which an attempt of 10 s could outlast.
		again := 0
		for _, m := range msgs {
			list, err := d.Deliveries(t.Context(), m.ID)
			if err != nil || list[0].State != "delivered" || list[0].Attempts != 1 || sends[m.ID] != 1 {
				t.Errorf("%s: %+v, %d sends, %v; want it delivered by one", m.ID, list, sends[m.ID], err)
			}
			if list[0].Claims > 1 {
				again++
			}
		}
		if again < 4 {
			t.Errorf("%d of the four that waited were given back and taken again", again)
		}
	})
}

// The 24 hours are looked at right before a send: a delivery that was
// taken in time and had to wait for its turn is not sent late.
func TestDeadlineIsLookedAtRightBeforeTheSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late []time.Duration
		began := time.Now()
		r := &slowFor{id: "slow", takes: 9 * time.Second, respond: func(req *http.Request) (int, string) {
			if req.Header.Get("Webhook-Id") != "late" {
				return 200, ""
			}
			late = append(late, time.Since(began))
			return 429, fmt.Sprint((24*time.Hour - 5*time.Second).Seconds())
		}}
		s := &memstore.Store{}
		d := run(t, s, dispatch.Config{Transport: r, Poll: 30 * time.Second}, webhook.Endpoint{ID: "a", URL: "https://example.com/", Concurrency: 1})
		add := func(id string) {
			if _, err := d.Accept(t.Context(), webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		add("late")
		time.Sleep(24*time.Hour - 6*time.Second)
		add("slow") // takes the only place from 23:59:54 to 24:00:03
		time.Sleep(time.Minute)
		if len(late) != 1 {
			t.Fatalf("sent at %v, want nothing behind 24 hours", late)
		}
		letters, err := s.List(t.Context(), queue.Filter{})
		if err != nil || len(letters) != 1 || letters[0].Reason != "deadline" || letters[0].Attempts != 1 {
			t.Errorf("letters are %+v, %v", letters, err)
		}
		if i, _ := d.Deliveries(t.Context(), "late"); i[0].Claims < 2 {
			t.Errorf("it was never taken: %+v", i)
		}
	})
}

// slowFor responds to one message slowly and to the others at once.
type slowFor struct {
	id      string
	takes   time.Duration
	respond func(*http.Request) (status int, retryAfter string)
}

func (s *slowFor) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Webhook-Id") == s.id {
		time.Sleep(s.takes)
	}
	status, after := s.respond(req)
	h := http.Header{}
	if after != "" {
		h.Set("Retry-After", after)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("")), ProtoMajor: 1, ProtoMinor: 1}, nil
}

// An endpoint's policy names headers that tell a wait, as it does elsewhere.
func TestWaitHeadersOfAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []time.Time
		transport := roundTrip(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, time.Now())
			resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, ProtoMajor: 1, ProtoMinor: 1}
			if len(sent) == 1 {
				resp.StatusCode, resp.Header = 503, http.Header{"X-Pause": {"20m0s"}}
			}
			return resp, nil
		})
		d := run(t, &memstore.Store{}, dispatch.Config{Transport: transport}, webhook.Endpoint{
			ID: "a", URL: "https://example.com/",
			Policy: forbear.Policy{WaitHeaders: map[string]string{"x-pause": waitform.Duration}},
		})
		if _, err := d.Accept(t.Context(), webhook.Message{ID: "m", Endpoints: []string{"a"}, Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if len(sent) != 2 || sent[1].Sub(sent[0]) < 20*time.Minute {
			t.Errorf("sent at %v, want a second time after 20 minutes", sent)
		}
	})
}

// Lanes: what is due for an endpoint that hangs does not stand at the head of
// the claims, and takes no place from another.
func TestDeadEndpointHoldsNoOtherUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var latest time.Duration
		sent, hung := map[string]time.Time{}, 0
		transport := roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "hangs.example.com" {
				mu.Lock()
				hung++
				mu.Unlock()
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			mu.Lock()
			defer mu.Unlock()
			latest = max(latest, time.Since(sent[req.Header.Get("Webhook-Id")]))
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, ProtoMajor: 1, ProtoMinor: 1}, nil
		})
		s := &memstore.Store{}
		d := run(t, s, dispatch.Config{Transport: transport},
			webhook.Endpoint{ID: "hangs", URL: "https://hangs.example.com/"}, webhook.Endpoint{ID: "well", URL: "https://example.com/"})
		var dead []webhook.Message
		for i := range 5000 { // older than all that is to come
			dead = append(dead, webhook.Message{ID: fmt.Sprint("d", i), Endpoints: []string{"hangs"}, Body: []byte("{}")})
		}
		if _, err := d.Accept(t.Context(), dead...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for i := range 200 {
			id := fmt.Sprint("w", i)
			mu.Lock()
			sent[id] = time.Now()
			mu.Unlock()
			if _, err := d.Accept(t.Context(), webhook.Message{ID: id, Endpoints: []string{"well"}, Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		if n := d.Stats().Delivered; n != 200 || latest > 50*time.Millisecond {
			t.Errorf("%d of 200 delivered, the slowest after %v", n, latest)
		}
		if hung > 60 {
			t.Errorf("%d attempts at the endpoint that hangs, within a minute", hung)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// gated is a store whose first claim waits until it is let go.
type gated struct {
	*memstore.Store

	once    sync.Once
	claimed chan struct{} // closed when the claim is under way
	letGo   chan struct{}
}

func (g *gated) WriteBackAndClaim(ctx context.Context, t store.Step) (store.StepResult, error) {
	if len(t.Lanes) > 0 {
		g.once.Do(func() { close(g.claimed); <-g.letGo })
	}
	return g.Store.WriteBackAndClaim(ctx, t)
}

// An endpoint is disabled while a claim for it is under way, which then finds a
// message: it is given back, not sent.
func TestDisabledDuringAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{Store: &memstore.Store{}, claimed: make(chan struct{}), letGo: make(chan struct{})}
		r := &receiver{respond: always(200)}
		d, err := dispatch.New(dispatch.Config{Store: g, Alerts: g, Transport: r, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		synctest.Wait()
		if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/"}); err != nil {
			t.Fatal(err)
		}
		<-g.claimed // a lane that is new asks for what there may be
		if err := d.Disable(t.Context(), "a", "test"); err != nil {
			t.Fatal(err)
		}
		accept(t, d, 1)
		close(g.letGo)
		time.Sleep(time.Hour)
		if n := r.since(time.Time{}); n != 0 {
			t.Errorf("%d sends to a disabled endpoint", n)
		}
		if _, err := d.TestAndEnable(t.Context(), "a", webhook.ByOperator); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := r.since(time.Time{}); n != 2 { // the test's, and the message
			t.Errorf("%d sends when it was enabled again, want 2", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
