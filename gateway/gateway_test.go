package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/httpretry"
)

// quick is a policy whose retries come at once, with a budget and a breaker
// that are in no test's way.
var quick = forbear.Policy{
	PerAttempt: 10 * time.Second,
	Total:      30 * time.Second,
	MinAttempt: time.Millisecond,
	Backoff:    forbear.Backoff{Base: time.Millisecond, Cap: 5 * time.Millisecond},
	Budget:     budget.Policy{MinRetries: 1000},
	Breaker:    breaker.Policy{Disabled: true},
}

func retryer(t testing.TB, p forbear.Policy) *forbear.Retryer {
	t.Helper()
	r, err := forbear.New("upstream", p, forbear.WithoutLog(),
		forbear.WithWaiver(forbear.Waiver{Rule: "R-7", Dependency: "upstream", Reason: "a budget in no test's way"}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func parse(t testing.TB, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// start runs a gateway with the given routes on a socket of its own, and returns
// its address.
func start(t testing.TB, routes ...gateway.Route) string {
	t.Helper()
	g, err := gateway.New(gateway.Config{Routes: routes, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = gateway.NewServer(g)
	srv.Listener = gateway.Listener(srv.Listener, nil, nil)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

// before puts a gateway before h, with everything under /up sent there.
func before(t testing.TB, p forbear.Policy, h http.HandlerFunc) string {
	t.Helper()
	up := httptest.NewServer(h)
	t.Cleanup(up.Close)
	return start(t, gateway.Route{Prefix: "/up", Target: parse(t, up.URL), Retryer: retryer(t, p)})
}

// answer is a response whose body has been read.
type answer struct {
	*http.Response
	body string
}

func call(t testing.TB, method, address string, header http.Header, body io.Reader) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp, string(text)}
}

func get(t testing.TB, address string) answer {
	t.Helper()
	return call(t, http.MethodGet, address, nil, nil)
}

// requests records what an upstream saw.
type requests struct {
	mu   sync.Mutex
	seen []*http.Request
	body []string
}

func (rs *requests) add(r *http.Request) int {
	text, _ := io.ReadAll(r.Body)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.seen, rs.body = append(rs.seen, r), append(rs.body, string(text))
	return len(rs.seen)
}

func TestRetryIsInvisible(t *testing.T) {
	var rs requests
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		if rs.add(r) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("X-Upstream", "yes")
		_, _ = io.WriteString(w, "done")
	})
	got := call(t, http.MethodPut, address+"/up/a%20b?x=1;y=2", http.Header{"X-Retry-Attempt": {"0"}}, strings.NewReader("payload"))
	if got.StatusCode != 200 || got.body != "done" || got.Header.Get("X-Upstream") != "yes" {
		t.Fatalf("got %d %q", got.StatusCode, got.body)
	}
	if stop := got.Header.Get("Forbear-Stop"); stop != "" {
		t.Errorf("Forbear-Stop = %q on a success", stop)
	}
	if len(rs.seen) != 3 {
		t.Fatalf("the upstream saw %d requests, want 3", len(rs.seen))
	}
	for i, r := range rs.seen {
		if r.RequestURI != "/a%20b?x=1;y=2" || rs.body[i] != "payload" {
			t.Errorf("attempt %d: %s with body %q", i+1, r.RequestURI, rs.body[i])
		}
		if n := r.Header.Get("X-Retry-Attempt"); n != strconv.Itoa(i) {
			t.Errorf("attempt %d: X-Retry-Attempt %q", i+1, n)
		}
	}
}

// The caller's attempts are not the upstream's, even where the transport adds
// no number of its own.
func TestAttemptHeaderIsNotPassedOn(t *testing.T) {
	seen := make(chan []string, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- append(r.Header["X-Retry-Attempt"], r.Header["X-Envoy-Attempt-Count"]...)
	}))
	t.Cleanup(up.Close)
	g, err := gateway.New(gateway.Config{
		Routes:  []gateway.Route{{Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick)}},
		Options: []httpretry.Option{httpretry.WithoutAttemptHeader()},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	call(t, http.MethodGet, srv.URL+"/x", http.Header{"X-Retry-Attempt": {"7"}, "X-Envoy-Attempt-Count": {"8"}}, nil)
	if got := <-seen; len(got) > 0 {
		t.Errorf("attempt %q was passed on", got)
	}
}

func TestPostNeedsAKey(t *testing.T) {
	for _, tt := range []struct {
		name, key string
		attempts  int
	}{
		{"without key", "", 1},
		{"with key", "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", 4},
		{"with a key too long", strings.Repeat("k", 65), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rs requests
			address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
				rs.add(r)
				w.Header().Set("X-Why", "overload")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "go away")
			})
			h := http.Header{}
			if tt.key != "" {
				h.Set("Idempotency-Key", tt.key)
			}
			got := call(t, http.MethodPost, address+"/up/pay", h, strings.NewReader("{}"))
			if got.StatusCode != 503 || got.body != "go away" || got.Header.Get("X-Why") != "overload" {
				t.Errorf("got %d %q, want the upstream's own answer", got.StatusCode, got.body)
			}
			if n := got.Header.Get("Forbear-Attempts"); n != strconv.Itoa(tt.attempts) || len(rs.seen) != tt.attempts {
				t.Errorf("Forbear-Attempts %q, the upstream saw %d, want %d", n, len(rs.seen), tt.attempts)
			}
			want := "no_idempotency_key"
			if tt.attempts > 1 {
				want = "exhausted"
			}
			if stop := got.Header.Get("Forbear-Stop"); stop != want {
				t.Errorf("Forbear-Stop %q, want %q", stop, want)
			}
			for _, r := range rs.seen {
				if r.Header.Get("Idempotency-Key") != tt.key {
					t.Errorf("the key changed to %q", r.Header.Get("Idempotency-Key"))
				}
			}
		})
	}
}

func TestTerminalAnswerIsPlain(t *testing.T) {
	address := before(t, quick, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	got := get(t, address+"/up/none")
	if got.StatusCode != 404 || got.Header.Get("Forbear-Stop") != "" {
		t.Errorf("got %d, Forbear-Stop %q", got.StatusCode, got.Header.Get("Forbear-Stop"))
	}
}

// R-7, whatever the number of callers: a dependency that is down gets at most
// 1.25 times the calls, where retrying alone would make it four times.
func TestBudgetIsShared(t *testing.T) {
	const calls, callers = 1000, 20
	var seen atomic.Int64
	p := quick
	p.Budget = budget.Policy{}
	address := before(t, p, func(w http.ResponseWriter, _ *http.Request) {
		seen.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var suppressed atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls / callers {
				resp, err := client.Get(address + "/up/x")
				if err != nil {
					t.Error(err)
					return
				}
				if resp.Header.Get("Forbear-Stop") == "budget_exhausted" {
					suppressed.Add(1)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	if n := seen.Load(); n > calls*125/100 || n < calls*110/100 {
		t.Errorf("%d calls made %d requests, want 1.1 to 1.25 times as many", calls, n)
	}
	if suppressed.Load() == 0 {
		t.Error("no answer says that the budget was exhausted")
	}
}

// An open breaker answers in the upstream's place.
func TestBreakerAnswers(t *testing.T) {
	var seen atomic.Int64
	p := quick
	p.Breaker = breaker.Policy{MinCalls: 10}
	address := before(t, p, func(w http.ResponseWriter, _ *http.Request) {
		seen.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	for range 20 {
		get(t, address+"/up/x")
	}
	got := readProblem(t, get(t, address+"/up/x?token=s3cret"))
	if got.Status != 503 || got.Reason != "breaker_open" || got.Attempts != 0 || seen.Load() != 10 {
		t.Errorf("got %+v after %d requests, want an open breaker after 10", got, seen.Load())
	}
}

func TestRoutes(t *testing.T) {
	where := func(name string) *url.URL {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, name+" "+r.Host+" "+r.RequestURI)
		}))
		t.Cleanup(up.Close)
		return parse(t, up.URL)
	}
	pay, bulk, rest, named := where("pay"), where("bulk"), where("rest"), where("named")
	r := retryer(t, quick)
	address := start(
		t,
		gateway.Route{Prefix: "/pay", Target: pay.JoinPath("v1"), Retryer: r},
		gateway.Route{Prefix: "/pay/bulk/", Target: bulk, Retryer: r},
		gateway.Route{Prefix: "/", Target: rest, Retryer: r},
		gateway.Route{Host: "Named.test", Target: named, Retryer: r},
	)
	for _, tt := range []struct{ host, path, want string }{
		{"", "/pay", "pay " + pay.Host + " /v1"},
		{"", "/pay/", "pay " + pay.Host + " /v1/"},
		{"", "/pay/a?b=c", "pay " + pay.Host + " /v1/a?b=c"},
		{"", "/pay/a%2Fb", "pay " + pay.Host + " /v1/a%2Fb"},
		{"", "/pay/bulk", "bulk " + bulk.Host + " /"},
		{"", "/pay/bulk/x", "bulk " + bulk.Host + " /x"},
		{"", "/pay/bulky", "pay " + pay.Host + " /v1/bulky"},
		{"", "/payments", "rest " + rest.Host + " /payments"},
		{"named.test:99", "/health/live", "named " + named.Host + " /health/live"},
		{"other.test", "/x/y/z/long/enough/path", "rest " + rest.Host + " /x/y/z/long/enough/path"},
	} {
		if got := call(t, http.MethodGet, address+tt.path, http.Header{"Host": {tt.host}}, nil); got.body != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.host, tt.path, got.body, tt.want)
		}
	}
}

// TestEmptyPort: a target whose port is empty is the same without (RFC 3986 section
// 6.2.3), for the dependency too.
func TestEmptyPort(t *testing.T) {
	target := parse(t, "http://a.test:/v1")
	base := start(t, gateway.Route{Prefix: "/", Target: target, Retryer: retryer(t, forbear.Policy{}), Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		body := io.NopCloser(strings.NewReader(r.URL.Host + " " + r.Host))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
	})})
	if got := get(t, base+"/x"); got.body != "a.test " {
		t.Errorf("sent to %q, want a.test", got.body)
	}
	if target.Host != "a.test:" {
		t.Errorf("the caller's own target became %v", target)
	}
}

func TestConfigFaults(t *testing.T) {
	r := retryer(t, quick)
	ok := parse(t, "http://up.test")
	_, err := gateway.New(gateway.Config{Routes: []gateway.Route{
		{Target: ok, Retryer: r},
		{Prefix: "/a", Host: "a", Target: ok, Retryer: r, Limits: gateway.Limits{Stream: true, Timeout: 1}},
		{Prefix: "a", Target: ok, Retryer: r},
		{Prefix: "/a/../b", Target: ok, Retryer: r},
		{Prefix: "/a", Target: ok},
		{Prefix: "/a", Retryer: r},
		{Prefix: "/a", Target: parse(t, "ftp://up.test"), Retryer: r},
		{Prefix: "/a", Target: parse(t, "http://user:secret@up.test"), Retryer: r},
		{Prefix: "/same", Target: ok, Retryer: r},
		{Prefix: "/same/", Target: ok, Retryer: r},
		{Prefix: "/k", Target: ok, Retryer: r, Ingress: &gateway.Ingress{}, Limits: gateway.Limits{Stream: true}},
		{Prefix: "/n", Target: parse(t, "http://:"), Retryer: r},
	}})
	const want = `route 1: want a prefix or a host
route 2: a route for streams cannot have a timeout, which would cut streams off: drop one of the two
route 3: prefix "a" is not a clean path
route 4: prefix "/a/../b" is not a clean path
route 5: no retryer
route 6: no target
route 7: the target is not an http or https address
route 8: the target has a user, a query or a fragment
route 10: another route already takes /same
route 11: a route for streams cannot have idempotency keys, which store whole responses: drop one of the two
route 12: the target is not an http or https address`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestHealth(t *testing.T) {
	g, err := gateway.New(gateway.Config{})
	if err != nil {
		t.Fatal(err)
	}
	status := func(path string) int {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	if a, b, c := status("/health/live"), status("/health/ready"), status("/health/else"); a != 200 || b != 200 || c != 404 {
		t.Errorf("live %d, ready %d, else %d", a, b, c)
	}
	g.Drain()
	if a, b := status("/health/live"), status("/health/ready"); a != 200 || b != 503 {
		t.Errorf("draining: live %d, ready %d", a, b)
	}
}

func TestCorrelation(t *testing.T) {
	ids := make(chan string, 10)
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		ids <- r.Header.Get("X-Correlation-ID")
		w.Header().Set("X-Correlation-ID", "the upstream's")
	})
	for _, tt := range []struct {
		name, sent string
		kept       bool
	}{
		{"kept", "order-4711", true},
		{"made", "", false},
		{"too long", strings.Repeat("x", 129), false},
		{"not visible", "a\tb", false},
		{"request id", "order-4712", true},
	} {
		h := http.Header{}
		switch {
		case tt.name == "request id":
			h.Set("X-Request-ID", tt.sent)
		case tt.sent != "":
			h.Set("X-Correlation-ID", tt.sent)
		}
		got := call(t, http.MethodGet, address+"/up", h, nil).Header.Values("X-Correlation-ID")
		passed := <-ids
		if len(got) != 1 || got[0] == "" || got[0] != passed || (got[0] == tt.sent) != tt.kept {
			t.Errorf("%s: sent %q, passed on %q, answered %q", tt.name, tt.sent, passed, got)
		}
	}
}

func TestDeadlineIsPassedOn(t *testing.T) {
	const left = 3 * time.Second
	passed := make(chan string, 1)
	address := before(t, quick, func(_ http.ResponseWriter, r *http.Request) { passed <- r.Header.Get("X-Request-Deadline") })
	deadline := time.Now().Add(left).UnixMilli()
	call(t, http.MethodGet, address+"/up", http.Header{"X-Request-Deadline": {strconv.FormatInt(deadline, 10)}}, nil)
	// Less a margin for the gateway's own answer, and one for the upstream's.
	want := strconv.FormatInt(deadline-200, 10)
	if got := <-passed; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A caller that leaves ends the retrying.
func TestCallerLeaves(t *testing.T) {
	var seen atomic.Int64
	p := quick
	p.Backoff = forbear.Backoff{Base: 10 * time.Second, Cap: 10 * time.Second}
	p.Total = 30 * time.Second
	first := make(chan struct{}, 1)
	address := before(t, p, func(w http.ResponseWriter, _ *http.Request) {
		seen.Add(1)
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusServiceUnavailable)
		first <- struct{}{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-first; cancel() }()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, address+"/up", nil)
	begin := time.Now()
	if _, err := http.DefaultClient.Do(req); err == nil {
		t.Error("no error")
	}
	if took := time.Since(begin); took > 15*time.Second || seen.Load() != 1 {
		t.Errorf("took %v and %d requests", took, seen.Load())
	}
}
