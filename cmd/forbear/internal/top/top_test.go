package top

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/gateway/upstream"
)

// looks are two looks at a service, ten seconds apart.
func looks() (a, b gateway.Status) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a = gateway.Status{Service: "checkout", At: at, Incoming: 1000, Dependencies: []gateway.DependencyStatus{{
		Dependency: "payments", Initial: 1000, Retries: 100, Suppressed: map[string]int64{"budget_exhausted": 5},
	}}}
	b = gateway.Status{Service: "checkout", At: at.Add(10 * time.Second), Incoming: 2000, Dependencies: []gateway.DependencyStatus{{
		Dependency: "payments", Initial: 2000, Retries: 600, Layered: 3,
		Recovered:  map[string]int64{"http_503": 40, "timeout": 2},
		Failed:     map[string]int64{"http_500": 60, "http_503": 10},
		Suppressed: map[string]int64{"budget_exhausted": 15, "breaker_open": 10},
		Budget:     gateway.BudgetStatus{Used: 150, Allowed: 200},
		Breaker:    &gateway.BreakerStatus{State: "open", Forced: true, FailureRate: 0.5},
	}, {Dependency: "evil\x1b[2J"}}}
	return a, b
}

const topLines = `2026-03-01T12:00:10Z dependency=payments first=100.0/s retries=50.0/s ratio=50.0% sends_per_call=1.50 budget_left="50 of 200" breaker="open, forced (50%)" suppressed=2.0/s multiplier=1.50 http_500=0 saved,60 failed http_503=40 saved,10 failed timeout=2 saved,0 failed notes="a layer below retries"
2026-03-01T12:00:10Z dependency=evil[2J first=0.0/s retries=0.0/s ratio=0.0% sends_per_call=0.00 budget_left="none" breaker="none" suppressed=0.0/s multiplier=1.50
`

func TestTopLines(t *testing.T) {
	if got := newView(looks()).lines(); got != topLines {
		t.Errorf("got\n%s\nwant\n%s", got, topLines)
	}
}

// What is behind a breaker: the dependency or the budget.
func TestTopSaysWhyABreakerIsOpen(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)
	for _, tt := range []struct {
		breaker gateway.BreakerStatus
		want    string
	}{
		{gateway.BreakerStatus{State: "closed", FailureRate: 0.02}, "closed (2%)"},
		{gateway.BreakerStatus{State: "closed", FailureRate: 0.31, Cause: "recovered", BudgetExhausted: true}, "closed (31%), budget spent"},
		{gateway.BreakerStatus{State: "open", FailureRate: 0.93, Cause: "failures", NextProbe: at.Add(4800 * time.Millisecond)}, "open (93%), failures, probe in 5s"},
		{gateway.BreakerStatus{State: "open", FailureRate: 0.93, Cause: "probe_failed", BudgetExhausted: true, NextProbe: at}, "open (93%), probe_failed, budget spent"},
		{gateway.BreakerStatus{State: "open", FailureRate: 0.3, Cause: "budget", BudgetExhausted: true, NextProbe: at.Add(3 * time.Second)}, "open (30%), budget, probe in 3s"},
		{gateway.BreakerStatus{State: "half-open", FailureRate: 0.93, Cause: "waited"}, "half-open (93%)"},
		{gateway.BreakerStatus{State: "open", Forced: true, Cause: "operator"}, "open, forced (0%)"},
	} {
		now := gateway.Status{At: at, Dependencies: []gateway.DependencyStatus{{Dependency: "payments", Breaker: &tt.breaker}}}
		v := newView(gateway.Status{At: at.Add(-10 * time.Second)}, now)
		if got := v.lines(); !strings.Contains(got, `breaker="`+tt.want+`" `) {
			t.Errorf("%+v: want %q in %s", tt.breaker, tt.want, got)
		}
	}
}

// How many of how many addresses take part, where there may be several.
func TestTopShowsEndpoints(t *testing.T) {
	now := gateway.Status{At: time.Now(), Dependencies: []gateway.DependencyStatus{{Dependency: "payments", Endpoints: []upstream.EndpointStatus{
		{Address: "10.0.0.1:80", In: true}, {Address: "10.0.0.2:80"}, {Address: "10.0.0.3:80", In: true},
	}}}}
	v := newView(gateway.Status{At: now.At.Add(-time.Second)}, now)
	if got := v.lines(); !strings.Contains(got, `notes="2 of 3 endpoints in rotation"`) {
		t.Errorf("got %s", got)
	}
	data, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(data), `"endpoints":3,"endpoints_in":2`) {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestTopTellsTheBreakerAsJSON(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)
	now := gateway.Status{At: at, Dependencies: []gateway.DependencyStatus{{
		Dependency: "payments",
		Breaker:    &gateway.BreakerStatus{State: "open", Cause: "failures", FailureRate: 0.75, BudgetExhausted: true, NextProbe: at.Add(5 * time.Second)},
	}}}
	data, err := json.Marshal(newView(gateway.Status{At: at.Add(-time.Second)}, now))
	if err != nil {
		t.Fatal(err)
	}
	const want = `"breaker":"open","failure_rate":0.75,"breaker_cause":"failures","budget_exhausted":true,"next_probe":"2026-03-01T12:00:15Z",`
	if !strings.Contains(string(data), want) {
		t.Errorf("got %s, want %s", data, want)
	}
}

// Deliveries have lines of their own, and are not taken for a storm.
func TestTopDeliveries(t *testing.T) {
	a, b := looks()
	b.Dependencies = append(b.Dependencies, gateway.DependencyStatus{Dependency: "webhook:acme", Initial: 10, Retries: 5000})
	v := newView(a, b)
	if v.Multiplier != 1.5 || v.Outgoing < 600 {
		t.Errorf("multiplier %v of %v outgoing: a backlog counts as a storm", v.Multiplier, v.Outgoing)
	}
	if got := v.lines(); !strings.Contains(got, "dependency=webhook:acme first=1.0/s retries=500.0/s") {
		t.Errorf("no line of the deliveries:\n%s", got)
	}
}

func TestTopTableIsRefreshedInPlace(t *testing.T) {
	var out bytes.Buffer
	tp := &top{out: &out, tty: true}
	if err := tp.show(newView(looks())); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if !strings.HasPrefix(got, "\x1b[H") || !strings.HasSuffix(got, "\x1b[J") || strings.Contains(got, "\x1b[2J") {
		t.Errorf("not in place, or what was sent reaches the terminal: %q", got)
	}
	for _, want := range []string{"checkout", "multiplier 1.50", "50 of 200", "open, forced (50%)", "50.0%", "a layer below retries", "http_503", "SAVED BY A RETRY"} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
}

func TestTopAfterARestart(t *testing.T) {
	a, b := looks()
	b.At = a.At.Add(20 * time.Second)
	v := newView(b, gateway.Status{At: b.At.Add(time.Second), Incoming: 7})
	if v.Incoming != 7 {
		t.Errorf("incoming %v/s, want 7: the counts began anew", v.Incoming)
	}
}

// Against an endpoint that demands a token, goes away, and comes back.
func TestTopCommand(t *testing.T) {
	a, b := looks()
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret-s3cret-s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch asked.Add(1) {
		case 1:
			_ = json.NewEncoder(w).Encode(a)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			_ = json.NewEncoder(w).Encode(b)
		}
	}))
	defer srv.Close()
	if got := clitest.Run(t, Command(), "", "--admin", srv.URL, "--count", "1"); got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "401") {
		t.Errorf("without a token: %+v", got)
	}
	t.Setenv(cli.EnvAdminToken, "s3cret-s3cret-s3cret")
	got := clitest.Run(t, Command(), "", "--admin", srv.URL, "--count", "2", "--interval", "100ms")
	if got.Code != cli.ExitOK || !strings.Contains(got.Out, "503 Service Unavailable; waiting\n") || !strings.HasSuffix(got.Out, topLines) {
		t.Errorf("got %+v", got)
	}
	asked.Store(2)
	got = clitest.Run(t, Command(), "", "--admin", srv.URL+"/", "--count", "1", "--interval", "100ms", "-o", "json")
	var v view
	if err := json.Unmarshal([]byte(got.Out), &v); err != nil || len(v.Dependencies) != 2 {
		t.Errorf("json: %v: %+v", err, got)
	}
}

func TestTopFaults(t *testing.T) {
	for _, args := range [][]string{
		{"--admin", "ftp://a"},
		{"--admin", "http://u:p@a"},
		{"--interval", "1ms"},
		{"-o", "xml"},
		{"--admin", "http://127.0.0.1:1", "--count", "1"},
		{"--admin-token-file", "/does/not/exist"},
	} {
		if got := clitest.Run(t, Command(), "", args...); got.Code != cli.ExitUsage || got.Out != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
