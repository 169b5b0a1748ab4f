package gateway_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/pace"
)

// told is one row of the guide's table of what a caller gets.
type told struct {
	statuses, types []string
	done            string
	wait            bool // there may be a Retry-After
	seen            []string
}

// toldTable reads the table of the guide.
func toldTable(t *testing.T) (rows []*told) {
	t.Helper()
	text, err := os.ReadFile("../docs/gateway-responses.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "| status | type |")
	part, _, _ = strings.Cut(part, "\n\n")
	for line := range strings.SplitSeq(part, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, &told{
			statuses: strings.Split(cells[0], ", "), types: strings.Split(strings.ReplaceAll(cells[1], "`", ""), ", "),
			done: cells[3], wait: cells[4] != "",
		})
	}
	if len(rows) < 10 {
		t.Fatalf("%d rows in the guide", len(rows))
	}
	return rows
}

// outcomes are the words of a problem's outcome for each of the guide's.
var outcomes = map[string][]string{
	"no": {"unsent"}, "maybe": {"unknown"}, "as `outcome` says": {"unsent", "unknown"},
}

// silent is a server that says nothing: the system takes the connections.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// TestWhatACallerGets holds the guide's table against the gateway, both ways: each
// problem is in it, with what it says of the request's fate and of when to come again,
// and each of its types is seen.
func TestWhatACallerGets(t *testing.T) {
	rows := toldTable(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	t.Cleanup(secure.Close)
	fine := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(fine.Close)
	slow := silent(t)
	hold := make(chan struct{})
	held := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	t.Cleanup(held.Close)
	defer close(hold)

	once := quick
	once.MaxRetries = 1
	spent := once // the first retry is refused by the budget
	spent.Strict, spent.Budget = true, budget.Policy{}
	hasty, hastySpent := once, spent
	hasty.PerAttempt, hastySpent.PerAttempt = 100*time.Millisecond, 100*time.Millisecond
	opened := func(p forbear.Policy) *forbear.Retryer {
		p.Breaker = breaker.Policy{}
		r := retryer(t, p)
		for range 40 {
			r.Breaker().Record(breaker.Permit{}, breaker.Failed, time.Now())
		}
		return r
	}
	trips := func(p forbear.Policy) *forbear.Retryer { // one more failure opens it
		p.Breaker = breaker.Policy{MinCalls: 20}
		r := retryer(t, p)
		for range 19 {
			r.Breaker().Record(breaker.Permit{}, breaker.Failed, time.Now())
		}
		return r
	}
	pacer := &pace.Pacer{}
	paced, err := forbear.New("upstream", quick, forbear.WithoutLog(), forbear.WithPacer(pacer),
		forbear.WithWaiver(forbear.Waiver{Rule: "R-7", Dependency: "upstream", Reason: "a budget in no test's way"}))
	if err != nil {
		t.Fatal(err)
	}
	place := retryer(t, forbear.Policy{MaxConcurrent: 1})
	if _, err := edge.Begin(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	source, write := stored(t, "Bearer a")
	tokens, err := source.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	write("")

	t.Setenv("GATEWAY_TEST_SECRET", "s3cret")
	slowTokens, err := gateway.CredentialSource{
		TokenURL: held.URL, ClientID: "checkout", ClientSecret: gateway.Reference{Env: "GATEWAY_TEST_SECRET"},
	}.Credentials()
	if err != nil {
		t.Fatal(err)
	}

	idle := quick
	idle.BodyIdle = 100 * time.Millisecond
	address := start(
		t,
		gateway.Route{Prefix: "/closed", Target: parse(t, closed.URL), Retryer: retryer(t, once)},
		gateway.Route{Prefix: "/closed-spent", Target: parse(t, closed.URL), Retryer: retryer(t, spent)},
		gateway.Route{Prefix: "/slow", Target: parse(t, slow), Retryer: retryer(t, hasty)},
		gateway.Route{Prefix: "/slow-spent", Target: parse(t, slow), Retryer: retryer(t, hastySpent)},
		gateway.Route{Prefix: "/slow-route", Target: parse(t, slow), Retryer: retryer(t, quick), Limits: gateway.Limits{Timeout: 2 * time.Second}},
		gateway.Route{Prefix: "/slow-trips", Target: parse(t, slow), Retryer: trips(hasty)},
		gateway.Route{Prefix: "/cut", Target: parse(t, scripted(t, "")), Retryer: retryer(t, once)},
		gateway.Route{Prefix: "/cut-trips", Target: parse(t, scripted(t, "")), Retryer: trips(once)},
		gateway.Route{Prefix: "/open", Target: parse(t, fine.URL), Retryer: opened(quick)},
		gateway.Route{Prefix: "/paced", Target: parse(t, fine.URL), Retryer: paced},
		gateway.Route{Prefix: "/place", Target: parse(t, fine.URL), Retryer: place},
		gateway.Route{Prefix: "/full", Target: parse(t, held.URL), Retryer: retryer(t, quick), Limits: gateway.Limits{MaxConcurrent: 1}},
		gateway.Route{Prefix: "/secure", Target: parse(t, secure.URL), Retryer: retryer(t, quick)},
		gateway.Route{Prefix: "/token", Target: parse(t, fine.URL), Retryer: retryer(t, quick), Credentials: tokens},
		gateway.Route{
			Prefix: "/slow-token", Target: parse(t, fine.URL), Retryer: retryer(t, quick), Credentials: slowTokens,
			Limits: gateway.Limits{Timeout: time.Second},
		},
		gateway.Route{Prefix: "/small", Target: parse(t, slow), Retryer: retryer(t, idle), Limits: gateway.Limits{MaxBody: 10}},
		gateway.Route{Prefix: "/read", Target: parse(t, fine.URL), Retryer: retryer(t, quick), Methods: []string{"GET"}},
	)
	full := dial(t, address)
	_, _ = io.WriteString(full, "GET /full/a HTTP/1.1\r\nHost: x\r\n\r\n")

	get := func(path string, header ...string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + strings.Join(header, "\r\n") + "\r\n\r\n"
	}
	for _, tt := range []struct {
		name, request, status, kind, outcome, detail string
		wait                                         bool
	}{
		{"no route", get("/none"), "404", "no-route", "unsent", "no route", false},
		{"method", strings.Replace(get("/read/a"), "GET", "PUT", 1), "405", "method", "unsent", "", false},
		{"path", get("/closed/%2e%2e/a"), "400", "bad-path", "unsent", "", false},
		{"host", strings.Replace(get("/closed/a"), "Host: x", "Host: a,b", 1), "400", "bad-host", "unsent", "", false},
		{"wrong name", get("/token/a"), "403", "host", "unsent", "", false},
		{"another page", strings.Replace(get("/token/a", "Sec-Fetch-Site: cross-site"), "Host: x", "Host: localhost", 1), "403", "cross-origin", "unsent", "", false},
		{"gRPC", get("/closed/a", "Content-Type: application/grpc"), "505", "http-version", "unsent", "", false},
		{"late", get("/closed/a", "X-Request-Deadline: 1000"), "504", "deadline", "unsent", "", false},
		{"long body", "POST /small/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 11\r\n\r\n01234567890", "413", "request-body", "unsent", "", false},
		{"body that grows long", "POST /small/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n", "413", "request-body", "unknown", "", false},
		{"body that stands still", "POST /small/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 9\r\n\r\n0", "408", "request-body", "unknown", "", false},
		{"broken body", "POST /small/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400", "request-body", "unknown", "", false},
		{"paced", get("/paced/a"), "429", "paced", "unsent", "nothing was sent", true},
		{"breaker", get("/open/a"), "503", "suppressed", "unsent", "circuit breaker open until", true},
		{"places of the dependency", get("/place/a"), "503", "suppressed", "unsent", "", false},
		{"places of the route", get("/full/b"), "503", "suppressed", "unsent", "", true},
		{"no token", strings.Replace(get("/token/a"), "Host: x", "Host: localhost", 1), "502", "credentials", "unsent", "", false},
		{"no token in time", strings.Replace(get("/slow-token/a"), "Host: x", "Host: localhost", 1), "504", "deadline", "unsent", "", false},
		{"certificate", get("/secure/a"), "502", "certificate", "unsent", "unknown authority", false},
		{"refused", get("/closed/a"), "502", "upstream", "unsent", "connection_refused", false},
		{"refused, and the budget spent", get("/closed-spent/a"), "502", "upstream", "unsent", "0 of 0 retries of this 30s window used; the share of all calls is budget.ratio", false},
		{"broken off", get("/cut/a"), "502", "upstream", "unknown", "", false},
		{"broken off, and the breaker opens", get("/cut-trips/a"), "502", "upstream", "unknown", "circuit breaker open until", true},
		{"timed out", get("/slow/a"), "504", "timeout", "unknown", "", false},
		{"timed out, and the budget spent", get("/slow-spent/a"), "504", "timeout", "unknown", "0 of 0 retries of this 30s window used; the share of all calls is budget.ratio", false},
		{"timed out, and the breaker opens", get("/slow-trips/a"), "504", "timeout", "unknown", "circuit breaker open until", true},
		{"the route's time", get("/slow-route/a"), "504", "timeout", "unknown", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.kind == "paced" {
				for range 8 { // now: it forgets
					pacer.Throttled(time.Now(), time.Now(), time.Minute)
				}
			}
			text := raw(t, address, tt.request)
			head, body, _ := strings.Cut(text, "\r\n\r\n")
			var p struct {
				Type, Outcome, Detail, Reason, Help string
				Attempts                            int
			}
			if err := json.Unmarshal([]byte(body), &p); err != nil {
				t.Fatalf("%v: %q", err, text)
			}
			kind := strings.TrimPrefix(p.Type, "urn:forbear:problem:")
			wait := strings.Contains(head, "\r\nRetry-After: ")
			if !strings.HasPrefix(head, "HTTP/1.1 "+tt.status+" ") || kind != tt.kind || p.Outcome != tt.outcome ||
				wait != tt.wait || !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("got %s\nwant %s %s, %s, %q, with a wait: %v", text, tt.status, tt.kind, tt.outcome, tt.detail, tt.wait)
			}
			if p.Attempts > 0 && (tt.status == "503" || tt.status == "429") {
				t.Errorf("%s after %d attempts", tt.status, p.Attempts)
			}
			if want := "https://github.com/forbear-go/forbear/blob/main/docs/reference/reasons.md#" + p.Reason; p.Reason != "" && p.Help != want {
				t.Errorf("help %q, want %q", p.Help, want)
			}
			i := slices.IndexFunc(rows, func(r *told) bool {
				return slices.Contains(r.statuses, tt.status) && slices.Contains(r.types, kind) && slices.Contains(outcomes[r.done], tt.outcome)
			})
			if i < 0 {
				t.Fatalf("the guide has no row for %s %s, %s", tt.status, kind, tt.outcome)
			}
			if wait && !rows[i].wait {
				t.Errorf("the guide says nothing of a Retry-After for %s %s", tt.status, kind)
			}
			rows[i].seen = append(rows[i].seen, kind)
		})
	}
	for _, r := range rows {
		for _, kind := range r.types {
			if !slices.Contains(r.seen, kind) && kind != "loop" {
				t.Errorf("no call here brought the guide's %v %s", r.statuses, kind)
			}
		}
	}
}

// TestEveryProblemIsTold: the guide has a row for each type that the gateway has.
func TestEveryProblemIsTold(t *testing.T) {
	var known []string
	for _, r := range toldTable(t) {
		known = append(known, r.types...)
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	made := regexp.MustCompile(`(?:newProblem|set)\([^,"]+, "([a-z0-9-]+)"`)
	n := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllStringSubmatch(string(text), -1) {
			if n++; !slices.Contains(known, m[1]) && m[1] != "idempotency" { // of gRPC alone
				t.Errorf("%s: the guide has no row for %q", e.Name(), m[1])
			}
		}
	}
	if n < 15 {
		t.Errorf("%d problems found: the test reads too little", n)
	}
}
