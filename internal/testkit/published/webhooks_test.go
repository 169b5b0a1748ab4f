package published

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// standardWebhooks is what the specification of Standard Webhooks says of operation, for
// deliveries in virtual time: 2xx is a success, everything else a failure, to be repeated
// for days; redirects are not followed, and 410 disables the endpoint.
func standardWebhooks(t *testing.T) *tally {
	const once = "one send (R-4)"
	sentOnce := func(d *delivered) bool { return len(d.sent) == 1 && d.state == store.StateDelivered }
	notFollowed := func(d *delivered) bool { return d.others == 0 && d.state == store.StateDead }
	repeated := func(d *delivered) bool { return len(d.sent) > 1 && d.state == store.StateDead }
	var c tally
	for _, tc := range []struct {
		name   string
		status int
		after  string // Retry-After
		want   func(*delivered) bool
		rule   string
	}{
		{"200", 200, "", sentOnce, ""},
		{"204", 204, "", sentOnce, ""},
		{"301, elsewhere", 301, "", notFollowed, ""},
		{"410 disables", 410, "", func(d *delivered) bool { return len(d.sent) == 1 && d.endpoint == webhook.Disabled }, ""},
		{"400", 400, "", repeated, once},
		{"404", 404, "", repeated, once},
		{"429", 429, "", repeated, ""},
		{"500", 500, "", repeated, ""},
		{"502", 502, "", repeated, ""},
		{"504", 504, "", repeated, ""},
		{"503 with a wait of an hour", 503, "3600", func(d *delivered) bool {
			return len(d.sent) > 1 && d.sent[1].Sub(d.sent[0]) >= time.Hour
		}, ""},
	} {
		got := deliver(t, tc.status, tc.after)
		c.add(t, tc.name, tc.want(got), tc.rule, got)
		if tc.rule == once && (len(got.sent) != 1 || got.state != store.StateDead) {
			t.Errorf("%s: got %+v, want a dead letter after one send", tc.name, got)
		}
	}
	// The example of a schedule there, as far as eight attempts go, takes 31 hours.
	got := get(t, forbear.Policy{Kind: forbear.Webhook, MaxAttempts: 8, Backoff: forbear.Backoff{Schedule: []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour,
	}}}, math.Nextafter(1, 0), response{status: http.StatusInternalServerError})
	var took time.Duration
	for _, wait := range got.waits {
		took += wait
	}
	c.add(t, "days", took > 24*time.Hour, "at most 24 h (R-3)", got)
	if took < 12*time.Hour {
		t.Errorf("days: got %+v", got)
	}
	return &c
}

// delivered is what became of a message.
type delivered struct {
	sent     []time.Time
	others   int    // requests to other places
	state    string // of the delivery
	endpoint webhook.EndpointState
}

// deliver sends a message to an endpoint that always responds in the same way, until the
// delivery has ended.
func deliver(t *testing.T, status int, after string) (d *delivered) {
	synctest.Test(t, func(t *testing.T) {
		d = &delivered{}
		receiver := roundTrip(func(req *http.Request) *http.Response {
			if req.URL.Path == "/elsewhere" {
				d.others++
			} else {
				d.sent = append(d.sent, time.Now())
			}
			h := http.Header{"Location": {"/elsewhere"}}
			if after != "" {
				h.Set("Retry-After", after)
			}
			return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, ProtoMajor: 1, ProtoMinor: 1}
		})
		s := &memstore.Store{}
		dispatcher, err := dispatch.New(dispatch.Config{Store: s, Alerts: s, Transport: receiver, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- dispatcher.Run(ctx) }()
		if _, err := dispatcher.PutEndpoint(ctx, webhook.Endpoint{ID: "a", URL: "https://published.test/", Secrets: []string{webhook.NewSecret()}}); err != nil {
			t.Fatal(err)
		}
		if _, err := dispatcher.Accept(ctx, webhook.Message{ID: "m", Endpoints: []string{"a"}, Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		for limit := time.Now().Add(4 * 24 * time.Hour); d.state != store.StateDelivered && d.state != store.StateDead; {
			time.Sleep(time.Minute)
			list, err := dispatcher.Deliveries(ctx, "m")
			if err != nil || len(list) != 1 || time.Now().After(limit) {
				t.Fatalf("%+v, %v after %v; want one delivery that has ended", list, err, time.Now())
			}
			d.state = list[0].State
		}
		e, err := dispatcher.Endpoint(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		d.endpoint = e.State
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req), nil }
