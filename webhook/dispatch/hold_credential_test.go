package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// journal is a log that tests count lines of.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) count(part string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), part)
}

// credentials is the outside of an endpoint that needs a secret and a token:
// the vault, the token's server and the receiver. It counts what arrives, by
// message.
type credentials struct {
	vault

	takes   time.Duration // an attempt at the receiver
	slow    time.Duration // a token's request
	down    bool          // the token's server; locked by the vault's mutex
	fetches int
	sends   map[string]int
	last    time.Time // send
}

func (c *credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	status, body := 200, ""
	if req.URL.Host == "token.example.com" {
		c.fetches++
		if body = `{"access_token":"t","expires_in":60}`; c.down {
			status = 500
		}
	} else {
		if c.sends == nil {
			c.sends = map[string]int{}
		}
		c.sends[req.Header.Get("Webhook-Id")]++
		c.last = time.Now()
	}
	c.mu.Unlock()
	if body == "" {
		time.Sleep(c.takes)
	} else {
		time.Sleep(c.slow)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1}, nil
}

// there makes the credential available, or not.
func (c *credentials) there(is bool) {
	c.mu.Lock()
	c.down = !is
	c.mu.Unlock()
	if is {
		c.set("env:SIGN", webhook.NewSecret())
	} else {
		c.remove("env:SIGN")
	}
}

// total returns how many sends there were, and to how many messages.
func (c *credentials) total() (sends, messages int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.sends {
		sends += n
	}
	return sends, len(c.sends)
}

// alerts returns how often an alert of a reason was raised.
func alerts(t *testing.T, s *memstore.Store, reason string) (n int, detail string) {
	t.Helper()
	list, err := s.AlertPage(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.Reason == reason {
			n += int(a.Count)
			detail = a.Detail
		}
	}
	return n, detail
}

// batch adds messages m0 to m(n-1) to endpoint "a".
func batch(t *testing.T, d *dispatch.Dispatcher, n int) {
	t.Helper()
	msgs := make([]webhook.Message, n)
	for i := range msgs {
		msgs[i] = webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"a"}, Body: []byte(`{}`)}
	}
	if _, err := d.Accept(t.Context(), msgs...); err != nil {
		t.Fatal(err)
	}
}

var (
	signed = webhook.Endpoint{ID: "a", URL: "https://example.com/", Secrets: []string{"env:SIGN"}}
	tokens = webhook.Endpoint{ID: "a", URL: "https://example.com/", Auth: &webhook.Auth{TokenURL: "https://token.example.com/?tenant=planted", ClientID: "c", ClientSecret: "env:CLIENT"}}
)

// A credential that is gone for an hour holds its endpoint: one alert, a look
// now and then, nothing sent; then everything is delivered, once.
func TestMissingCredentialHoldsTheEndpoint(t *testing.T) {
	race.TooSlow(t, "TestHeldEndpointIsLookedAtAgain holds one, too")
	n := ringtest.Size(200, 2000)
	takes := 1400 * time.Second / time.Duration(n) // an attempt: all take 140 s, ten at a time
	for _, c := range []struct {
		name   string
		e      webhook.Endpoint
		before int // messages that are under way when it vanishes
		want   string
	}{
		{"a secret", signed, 0, "env:SIGN"},
		{"a secret, in the middle", signed, n, "env:SIGN"},
		{"a token's server", tokens, 0, "token.example.com"},
		{"a token's server, in the middle", tokens, n, "token.example.com"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, lines, s := &credentials{takes: takes}, &journal{}, &memstore.Store{}
				world.set("env:CLIENT", "planted-secret")
				world.there(true)
				d := run(t, s, dispatch.Config{Transport: world, Secrets: world.get, Logger: slog.New(slog.NewTextHandler(lines, nil))}, c.e)
				if c.before > 0 {
					batch(t, d, c.before)
					time.Sleep(65 * time.Second) // a token has 60
				}
				world.there(false)
				if c.before == 0 {
					batch(t, d, n)
				}
				time.Sleep(2 * time.Minute) // for a token that is still good
				already, _ := world.total()
				if c.before == 0 && already != 0 || already >= n {
					t.Fatalf("%d were sent before the hour", already)
				}
				world.mu.Lock()
				world.asked, world.fetches = 0, 0
				world.mu.Unlock()
				time.Sleep(time.Hour)
				if sends, _ := world.total(); sends != already {
					t.Errorf("%d sends without a credential", sends-already)
				}
				// Each wait is 45 s on average by now.
				if looks := max(world.asked, world.fetches); looks < 40 || looks > 160 {
					t.Errorf("looked %d times in an hour", looks)
				}
				if raised, detail := alerts(t, s, "credential"); raised != 1 || !strings.Contains(detail, "endpoint a ") || !strings.Contains(detail, c.want) || strings.Contains(detail, "planted") {
					t.Errorf("%d alerts, %q; want one that names the endpoint and %s", raised, detail, c.want)
				}
				list, err := d.Endpoints(t.Context())
				if err != nil || !strings.HasPrefix(list[0].Held, "secret not available: ") || !strings.Contains(list[0].Held, c.want) || len(d.Held()) != 1 {
					t.Errorf("shown is %q, %v", list[0].Held, err)
				}
				if stored, _ := s.Endpoints(t.Context()); stored[0].Held != "" {
					t.Error("what this process holds is stored")
				}
				world.there(true)
				back := time.Now()
				time.Sleep(time.Minute + 5*time.Minute)
				if sends, messages := world.total(); sends != n || messages != n {
					t.Errorf("%d sends of %d messages, want each of %d once", sends, messages, n)
				}
				// A minute and a half for the look, and all of them at ten a time.
				if took := world.last.Sub(back); took > 90*time.Second+time.Duration(n)/10*takes+10*time.Second {
					t.Errorf("all were sent after %v", took)
				}
				put := 0
				for i := range n {
					list, err := d.Deliveries(t.Context(), fmt.Sprint("m", i))
					if err != nil || list[0].State != "delivered" || list[0].Attempts != 1 || len(list[0].History) != 1 {
						t.Fatalf("message %d: %+v, %v", i, list, err)
					}
					put += list[0].Postponed
				}
				// One for each look, not for what was only given back.
				if st := d.Stats(); put > 140 || int(st.Postponed) != put {
					t.Errorf("%d postponements in the deliveries, %d counted", put, st.Postponed)
				}
				if began, ended := lines.count("level=ERROR msg=\"endpoint held\""), lines.count("level=INFO msg=\"endpoint no longer held\""); began != 1 || ended != 1 {
					t.Errorf("%d lines when it began and %d when it ended, want one each", began, ended)
				}
				if list, _ = d.Endpoints(t.Context()); list[0].Held != "" || len(d.Held()) != 0 {
					t.Errorf("still held: %q", list[0].Held)
				}
				if lines.count("planted") != 0 {
					t.Errorf("a secret or a query is in the log")
				}
			})
		})
	}
}

// What waits for a held endpoint becomes a dead letter at 24 hours, and
// the one alert of the hold stays the only one of its kind.
func TestHeldDeliveriesEndAt24Hours(t *testing.T) {
	race.TooSlow(t, "TestHeldEndpointIsLookedAtAgain holds one, too")
	synctest.Test(t, func(t *testing.T) {
		world, s := &credentials{}, &memstore.Store{}
		world.there(true)
		d := run(t, s, dispatch.Config{Transport: world, Secrets: world.get, Poll: time.Minute}, signed)
		world.there(false)
		n := ringtest.Size(30, 300)
		batch(t, d, n)
		time.Sleep(24*time.Hour - time.Minute)
		if list, _ := s.List(t.Context(), queue.Filter{Limit: 1000}); len(list) != 0 {
			t.Errorf("%d letters before 24 hours", len(list))
		}
		time.Sleep(3 * time.Minute)
		list, err := s.List(t.Context(), queue.Filter{Limit: 1000})
		if err != nil || len(list) != n || list[0].Reason != "deadline" || list[0].Attempts != 0 {
			t.Errorf("%d letters, %v", len(list), err)
		}
		if raised, _ := alerts(t, s, "credential"); raised != 1 {
			t.Errorf("%d alerts", raised)
		}
		if sends, _ := world.total(); sends != 0 {
			t.Errorf("%d sends", sends)
		}
	})
}

// A change of the endpoint and a test of it look again at once, which begins no
// second hold.
func TestHeldEndpointIsLookedAtAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		e    webhook.Endpoint
	}{{"a secret", signed}, {"a token", tokens}} {
		for _, way := range []struct {
			name string
			look func(*testing.T, *dispatch.Dispatcher, webhook.Endpoint) error
		}{
			{"put", func(t *testing.T, d *dispatch.Dispatcher, e webhook.Endpoint) error {
				_, err := d.PutEndpoint(t.Context(), e)
				return err
			}},
			{"updated", func(t *testing.T, d *dispatch.Dispatcher, e webhook.Endpoint) error {
				_, err := d.UpdateEndpoint(t.Context(), "a", func(*webhook.Endpoint) error { return nil })
				return err
			}},
			{"tested", func(t *testing.T, d *dispatch.Dispatcher, e webhook.Endpoint) error {
				_, err := d.TestAndEnable(t.Context(), "a", webhook.ByOperator)
				return err
			}},
		} {
			t.Run(c.name+", "+way.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					world, s := &credentials{}, &memstore.Store{}
					world.set("env:CLIENT", "x")
					world.there(true)
					d := run(t, s, dispatch.Config{Transport: world, Secrets: world.get, Poll: time.Minute}, c.e)
					world.there(false)
					batch(t, d, 100)
					for range 5 { // at any point of the wait
						time.Sleep(10*time.Minute + 7*time.Second)
						err := way.look(t, d, c.e)
						if refused := way.name != "tested" && c.e.Auth == nil; (err != nil) != refused {
							t.Errorf("while it is missing: %v", err)
						}
						if time.Sleep(time.Second); len(d.Held()) != 1 {
							t.Error("not held while it is missing")
						}
					}
					if raised, _ := alerts(t, s, "credential"); raised != 1 {
						t.Errorf("%d alerts, want one for the whole hold", raised)
					}
					time.Sleep(10 * time.Minute)
					world.there(true)
					if err := way.look(t, d, c.e); err != nil {
						t.Error(err)
					}
					if time.Sleep(time.Second); len(d.Held()) != 0 {
						t.Error("held though it is there")
					}
					if st := d.Stats(); st.Delivered != 100 {
						t.Errorf("%d delivered within a second, want all", st.Delivered)
					}
				})
			})
		}
	}
}

// A process that was idle while the secret was away shows no hold after a
// change, and an endpoint that is mended by one without any delivery is not
// shown as held.
func TestMendedEndpointIsNotShownAsHeld(t *testing.T) {
	race.TooSlow(t, "TestHeldEndpointIsLookedAtAgain holds one, too")
	synctest.Test(t, func(t *testing.T) {
		world, s := &credentials{}, &memstore.Store{}
		world.there(true)
		d := run(t, s, dispatch.Config{Transport: world, Secrets: world.get, Poll: time.Minute}, signed)
		world.there(false)
		batch(t, d, 1)
		time.Sleep(25 * time.Hour) // the delivery is a dead letter
		if len(d.Held()) != 1 {
			t.Fatal("not held")
		}
		world.set("env:OTHER", webhook.NewSecret())
		got, err := d.UpdateEndpoint(t.Context(), "a", func(e *webhook.Endpoint) error {
			e.Secrets = []string{"env:OTHER"}
			return nil
		})
		if err != nil || got.Held != "" || len(d.Held()) != 0 {
			t.Errorf("got %+v, %v, held %v", got, err, d.Held())
		}
		// The next time is another hold, with an alert of its own.
		world.remove("env:OTHER")
		batch(t, d, 2)
		time.Sleep(time.Minute)
		if raised, detail := alerts(t, s, "credential"); raised != 2 || !strings.Contains(detail, "env:OTHER") {
			t.Errorf("%d alerts, the latest %q", raised, detail)
		}
		if err := d.Disable(t.Context(), "a", "test"); err != nil || len(d.Held()) != 0 {
			t.Errorf("disabled, and held: %v, %v", d.Held(), err)
		}
	})
}

// Attempts that wait for the same token share its failure: a server that is
// down gets one request and not one for each place of the endpoint.
func TestAttemptsShareATokensFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, s := &credentials{slow: 2 * time.Second, down: true}, &memstore.Store{}
		world.set("env:CLIENT", "x")
		d := run(t, s, dispatch.Config{Transport: world, Secrets: world.get}, tokens)
		batch(t, d, 100)
		time.Sleep(2 * time.Second) // the failure is there, and the next look is yet to begin
		synctest.Wait()
		world.mu.Lock()
		defer world.mu.Unlock()
		if world.fetches != 1 {
			t.Errorf("%d requests for one token", world.fetches)
		}
		if st := d.Stats(); st.Postponed != 1 {
			t.Errorf("%d postponed, want the one that found out", st.Postponed)
		}
	})
}

// A secret that comes and goes with each look alerts no more often than the
// looks are spaced.
func TestFlappingSecretDoesNotFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, s := &credentials{}, &memstore.Store{}
		world.there(true)
		flap := func(ctx context.Context, ref string) (string, error) {
			value, err := world.get(ctx, ref)
			world.mu.Lock()
			defer world.mu.Unlock()
			if world.asked%2 == 0 {
				return "", errors.New("now and then")
			}
			return value, err
		}
		d := run(t, s, dispatch.Config{Transport: world, Secrets: flap}, signed)
		batch(t, d, 2000)
		time.Sleep(10 * time.Minute)
		if raised, _ := alerts(t, s, "credential"); raised == 0 || raised > 10*60/5 {
			t.Errorf("%d alerts in ten minutes", raised)
		}
		if _, messages := world.total(); messages == 0 {
			t.Error("nothing is sent, though every second look finds the secret")
		}
	})
}
