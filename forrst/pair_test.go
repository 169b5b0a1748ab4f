package forrst_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/forrst"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// arrival is what the server saw of one attempt.
type arrival struct {
	at       time.Time
	id, key  string
	deadline time.Duration
}

// server answers with its script, one entry for each attempt, and then with a
// result.
type server struct {
	script   []func(w http.ResponseWriter, id string)
	arrivals []arrival
}

type wireRequest struct {
	ID         string `json:"id"`
	Extensions []struct {
		URN     string `json:"urn"`
		Options struct {
			Key   string `json:"key"`
			Value int64  `json:"value"`
			Unit  string `json:"unit"`
		} `json:"options"`
	} `json:"extensions"`
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req wireRequest
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &req); err != nil || req.ID == "" {
		http.Error(w, "broken request: "+string(body), http.StatusTeapot)
		return
	}
	a := arrival{at: time.Now(), id: req.ID}
	for _, e := range req.Extensions {
		if e.Options.Key != "" {
			a.key = e.Options.Key
		}
		if e.Options.Unit != "" {
			a.deadline, _ = forrst.Duration{Value: e.Options.Value, Unit: e.Options.Unit}.Wait()
		}
	}
	s.arrivals = append(s.arrivals, a)
	if n := len(s.arrivals); n <= len(s.script) {
		s.script[n-1](w, req.ID)
		return
	}
	_ = (&forrst.Response{Protocol: forrst.Current, ID: &req.ID, Result: json.RawMessage(`{"ok":true}`)}).Write(w)
}

// RoundTrip makes the server a transport, so that time is virtual.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, req)
	return rec.Result(), nil
}

func bare(code string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) {
		r := forrst.Refuse(id, nil, forrst.Error{Code: code, Message: "no"})
		r.Extensions = nil // as a server before the extension
		_ = r.Write(w)
	}
}

func refusing(guide *forrst.Retry, errs ...forrst.Error) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) { _ = forrst.WriteError(w, id, guide, errs...) }
}

func raw(status int, body string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "$ID", id))
	}
}

func repeat[T any](n int, v T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}

const (
	keyed = `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"req_1","call":{"function":"charges.create","arguments":{"amount":100}},
	"extensions":[{"urn":"urn:forrst:ext:idempotency","options":{"key":"charge_1"}},
	{"urn":"urn:forrst:ext:deadline","options":{"value":2,"unit":"second"}}]}`
	unkeyed = `{"protocol":{"name":"forrst","version":"0.1.0"},"id":"req_1","call":{"function":"charges.list"}}`
)

// longest draws every wait near its end, so that a wrong base shows.
const longest = 0.999

func send(t *testing.T, s *server, p forbear.Policy, o forrst.Options, body string) (*http.Response, []byte, error) {
	t.Helper()
	opts := []forbear.Option{
		forbear.WithoutLog(), forbear.WithBudget(budget.NewTokenBucket(1000, 1)),
		forbear.WithRand(func() float64 { return longest }),
	}
	if p.Kind.Durable() {
		opts = append(opts, forbear.WithCallerDeadLetter())
	}
	r, err := forbear.New("billing", p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://billing.test/rpc", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := forrst.NewTransport(s, r, o).RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer, nil
}

// TestTheSixCodes plays each code of the default table against a server that
// never recovers: how often, how far apart, with which ids and keys. Once with
// a server from before the extension, so that the client's table decides, and
// once with the extension that the server's table writes.
func TestTheSixCodes(t *testing.T) {
	for _, tc := range []struct {
		code    string
		retries int
		floor   []time.Duration // per retry; the last repeats
		ceiling []time.Duration
	}{
		{"RATE_LIMITED", 5, []time.Duration{time.Minute}, []time.Duration{65 * time.Second}},
		{"UNAVAILABLE", 5, []time.Duration{0}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}},
		{"DEADLINE_EXCEEDED", 5, []time.Duration{0}, []time.Duration{0, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}},
		{"INTERNAL_ERROR", 3, []time.Duration{0}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"DEPENDENCY_ERROR", 5, []time.Duration{0}, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second}},
		{"IDEMPOTENCY_PROCESSING", 5, []time.Duration{time.Second}, []time.Duration{2 * time.Second}},
	} {
		for _, announced := range []bool{false, true} {
			name, answer := tc.code+"/table", bare(tc.code)
			if announced {
				name, answer = tc.code+"/extension", refusing(nil, forrst.Error{Code: tc.code, Message: "no"})
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &server{script: repeat(20, answer)}
					resp, _, err := send(t, s, forbear.Policy{Kind: forbear.Event, Breaker: breaker.Policy{Disabled: true}}, forrst.Options{}, keyed)
					if err != nil {
						t.Fatal(err)
					}
					if got := len(s.arrivals) - 1; got != tc.retries {
						t.Fatalf("%d retries, want %d", got, tc.retries)
					}
					if why, ok := httpretry.Outcome(resp); !ok || why.Reason != reason.Exhausted || why.Type != "forrst_"+tc.code {
						t.Errorf("outcome %+v, want exhausted by %s", why, tc.code)
					}
					row, _ := forrst.Default(tc.code)
					for i := 1; i < len(s.arrivals); i++ {
						gap := s.arrivals[i].at.Sub(s.arrivals[i-1].at)
						floor, ceiling := tc.floor[min(i, len(tc.floor))-1], tc.ceiling[min(i, len(tc.ceiling))-1]
						if announced && row.Strategy == forrst.Exponential {
							// The extension's after is a minimum as well.
							floor, ceiling = row.After, ceiling+row.After
						}
						if gap < floor || gap > ceiling || !announced && float64(gap) < 0.99*float64(ceiling) {
							t.Errorf("wait %d is %v, drawn at its longest; want %v to %v", i, gap, floor, ceiling)
						}
					}
					ids := map[string]bool{}
					for _, a := range s.arrivals {
						ids[a.id] = true
						if a.key != "charge_1" {
							t.Errorf("key %q, want charge_1 each time", a.key)
						}
					}
					if len(ids) != len(s.arrivals) || !ids["req_1"] {
						t.Errorf("%d ids for %d attempts, want a new one each time", len(ids), len(s.arrivals))
					}
				})
			})
		}
	}
}

// TestACrowdThatIsSentBackAtOnce: fifty clients of a slow server, which tells each of
// them to come back at once, are there twice at once and then no more as a crowd.
func TestACrowdThatIsSentBackAtOnce(t *testing.T) {
	for name, script := range map[string]func(http.ResponseWriter, string){
		"by the table":     bare("DEADLINE_EXCEEDED"),
		"by the extension": refusing(nil, forrst.Error{Code: "DEADLINE_EXCEEDED", Message: "no"}),
		"fixed, a moment":  refusing(&forrst.Retry{Allowed: true, Strategy: forrst.Fixed, After: &forrst.Duration{Value: 1, Unit: "millisecond"}}, forrst.Error{Code: "UNAVAILABLE"}),
		"immediate":        refusing(&forrst.Retry{Allowed: true, Strategy: forrst.Immediate}, forrst.Error{Code: "UNAVAILABLE"}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients = 50
				start, soon := time.Now(), 0
				var all sync.WaitGroup
				var early [clients]int
				for i := range clients {
					all.Go(func() {
						s := &server{script: repeat(4, script)}
						r, err := forbear.New("billing", forbear.Policy{}, forbear.WithoutLog())
						if err != nil {
							t.Error(err)
							return
						}
						req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://billing.test/rpc", strings.NewReader(keyed))
						if resp, err := forrst.NewTransport(s, r, forrst.Options{}).RoundTrip(req); err == nil {
							_ = resp.Body.Close()
						}
						if len(s.arrivals) != 4 {
							t.Errorf("%d attempts, want 4", len(s.arrivals))
						}
						for _, a := range s.arrivals {
							if a.at.Sub(start) < 10*time.Millisecond {
								early[i]++
							}
						}
					})
				}
				all.Wait()
				for _, n := range early {
					soon += n
				}
				// A second retry is within 10 ms of a first one once in 200 times.
				if soon < 2*clients || soon > 2*clients+clients/5 {
					t.Errorf("%d requests of %d clients in the first 10 ms, want about %d", soon, clients, 2*clients)
				}
			})
		})
	}
}

func TestAnswerComesBackUnderTheCallersID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: repeat(2, bare("UNAVAILABLE"))}
		resp, body, err := send(t, s, forbear.Policy{}, forrst.Options{}, keyed)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := forrst.ParseResponse(body)
		if err != nil || answer.ID == nil || *answer.ID != "req_1" || string(answer.Result) != `{"ok":true}` {
			t.Errorf("answer %s (%v), want the result under req_1", body, err)
		}
		if resp.ContentLength != int64(len(body)) {
			t.Errorf("Content-Length %d for %d bytes", resp.ContentLength, len(body))
		}
		if len(s.arrivals) != 3 {
			t.Errorf("%d attempts, want 3", len(s.arrivals))
		}
	})
}

func TestLongerDeadlineWithinWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: repeat(3, bare("DEADLINE_EXCEEDED"))}
		if _, _, err := send(t, s, forbear.Policy{Total: 7 * time.Second, Backoff: forbear.Backoff{Base: 1}}, forrst.Options{}, keyed); err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		for _, a := range s.arrivals {
			got = append(got, a.deadline)
		}
		want := []time.Duration{2 * time.Second, 4 * time.Second, 7 * time.Second, 7 * time.Second}
		if len(got) != len(want) {
			t.Fatalf("deadlines %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("deadlines %v, want %v", got, want)
				break
			}
		}
	})
}

func TestSyncRateLimitWithoutATimeFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := &server{script: repeat(9, bare("RATE_LIMITED"))}, time.Now()
		resp, _, err := send(t, s, forbear.Policy{}, forrst.Options{}, keyed)
		if err != nil {
			t.Fatal(err)
		}
		why, _ := httpretry.Outcome(resp)
		if len(s.arrivals) != 1 || time.Since(began) != 0 || why.Reason != reason.HintTooLong {
			t.Errorf("%d attempts, %v, %v: want 1, at once, after_exceeds_deadline", len(s.arrivals), time.Since(began), why)
		}
	})
}

func TestCallsThatAreNotRepeated(t *testing.T) {
	unavailable := bare("UNAVAILABLE")
	for _, tc := range []struct {
		name   string
		answer func(http.ResponseWriter, string)
		body   string
		reason forbear.Reason // ReasonNone: a success
	}{
		{"no key", unavailable, unkeyed, reason.NoKey},
		{"refused by the extension", refusing(&forrst.Retry{}, forrst.Error{Code: "UNAVAILABLE"}), keyed, reason.ServerStop},
		{"a final code under HTTP 503", raw(503, `{"protocol":{"name":"forrst"},"id":"$ID","result":null,"errors":[{"code":"INVALID_ARGUMENTS","message":""}]}`), keyed, reason.Terminal},
		{"queued for later", raw(202, `{"protocol":{"name":"forrst"},"id":"$ID","result":null,"extensions":[{"urn":"urn:cline:forrst:ext:replay","data":{"status":"queued","replay_id":"r"}}]}`), keyed, reason.None},
		{"an answer to another request", raw(200, `{"protocol":{"name":"forrst"},"id":"other","result":{}}`), keyed, reason.Terminal},
		{"no JSON under 200", raw(200, `<html>`), keyed, reason.Terminal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: repeat(9, tc.answer)}
				resp, _, err := send(t, s, forbear.Policy{}, forrst.Options{}, tc.body)
				if err != nil {
					t.Fatal(err)
				}
				var got forbear.Reason
				if why, ok := httpretry.Outcome(resp); ok {
					got = why.Reason
				}
				if len(s.arrivals) != 1 || got != tc.reason {
					t.Errorf("%d attempts, reason %v; want 1, %v", len(s.arrivals), got, tc.reason)
				}
			})
		})
	}
}

func TestKeysOfCallsWithoutOne(t *testing.T) {
	t.Run("declared idempotent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &server{script: repeat(1, bare("UNAVAILABLE"))}
			o := forrst.Options{Idempotent: func(f string) bool { return f == "charges.list" }}
			if _, _, err := send(t, s, forbear.Policy{}, o, unkeyed); err != nil || len(s.arrivals) != 2 {
				t.Errorf("%d attempts, %v; want 2", len(s.arrivals), err)
			}
		})
	})
	t.Run("made by forbear", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &server{script: repeat(2, bare("UNAVAILABLE"))}
			if _, _, err := send(t, s, forbear.Policy{Keys: forbear.KeyGenerate}, forrst.Options{}, unkeyed); err != nil {
				t.Fatal(err)
			}
			for _, a := range s.arrivals {
				if len(a.key) != 36 || a.key != s.arrivals[0].key {
					t.Errorf("keys %+v, want one UUID for all", s.arrivals)
				}
			}
			if len(s.arrivals) != 3 {
				t.Errorf("%d attempts, want 3", len(s.arrivals))
			}
		})
	})
}

func TestPhase2Warns(t *testing.T) {
	flagged := raw(503, `{"protocol":{"name":"forrst"},"id":"$ID","result":null,"errors":[{"code":"ORDERS_BUSY","message":"","retryable":true}]}`)
	for phase, want := range map[forrst.Phase]struct{ attempts, warnings int }{
		forrst.Phase1: {3, 0}, forrst.Phase2: {3, 1}, forrst.Phase3: {1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			s := &server{script: repeat(2, flagged)}
			if _, _, err := send(t, s, forbear.Policy{}, forrst.Options{Phase: phase, Logger: textLogger(&log)}, keyed); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(log.String(), "level=WARN"); len(s.arrivals) != want.attempts || n != want.warnings {
				t.Errorf("phase %d: %d attempts, %d warnings; want %+v", phase, len(s.arrivals), n, want)
			}
		})
	}
}

func TestQueuedIsASuccessOfItsOwn(t *testing.T) {
	for _, urn := range []string{"urn:forrst:ext:replay", "urn:cline:forrst:ext:replay"} {
		body := `{"protocol":{"name":"forrst"},"id":"r","result":null,"extensions":[{"urn":"` + urn + `","data":{"status":"queued"}}]}`
		if a := forrst.Phase1.Advise(forrst.Message{Status: 202, Body: []byte(body)}); a.Outcome != forrst.Queued || a.Failure.Class != forbear.ClassSuccess {
			t.Errorf("%s: %+v", urn, a)
		}
	}
}

// TestForeignBodiesPassThrough sends what is no envelope as plain HTTP.
func TestForeignBodiesPassThrough(t *testing.T) {
	var got []string
	next := roundTripper(func(req *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(req.Body)
		got = append(got, string(body))
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
	})
	r := forbear.Must(forbear.New("billing", forbear.Policy{}, forbear.WithoutLog()))
	rt := forrst.NewTransport(next, r, forrst.Options{MaxBody: 256})
	long := strings.Replace(unkeyed, "charges.list", strings.Repeat("x", 300), 1)
	for _, body := range []string{`{"jsonrpc":"2.0"}`, "no json", "", long} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://billing.test/", io.NopCloser(strings.NewReader(body)))
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got[len(got)-1] != body {
			t.Errorf("sent %q, want %q", got[len(got)-1], body)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
