package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/bench/console/seed"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// call is an operation of the API that the console's pages need. %s in its path and body
// is what the n-th call asks about.
type call struct {
	name, method, path, body string
	asks                     func(n int) string
}

// calls lists them, for a database with so many messages. Those that follow a cursor, or
// need what a former response says, get it from find.
func calls(messages, endpoints int, find func(path, list, field string) string) []call {
	pick := func(format string, of int) func(int) string {
		return func(n int) string { return fmt.Sprintf(format, 1+n*7919%of) }
	}
	endpoint, failing := pick("endpoint-%08d", endpoints), func(n int) string { return fmt.Sprintf("endpoint-%08d", 20*(1+n%(endpoints/20))) }
	since := time.Now().Add(-3 * 24 * time.Hour).UTC()
	hour := func(n int) string {
		from := since.Add(-time.Duration(n%60) * time.Hour)
		return "since=" + from.Format(time.RFC3339) + "&until=" + from.Add(time.Hour).Format(time.RFC3339)
	}
	letter := find("/v1/dead-letters?limit=1000&state=dead", "dead_letters", "id")
	cause, target := find("/v1/dead-letters?destination=stuck&limit=1", "dead_letters", "cause"), find("/v1/audit?limit=1000", "audit", "target")
	return []call{
		{"messages", "GET", "/v1/messages?limit=50", "", nil},
		{"messages, deep", "GET", "/v1/messages?limit=50&after=%s", "", pick("%d", messages)},
		{"messages of an endpoint", "GET", "/v1/messages?limit=50&patience=60ms&endpoint=%s", "", endpoint},
		{"messages of an endpoint, waiting", "GET", "/v1/messages?limit=50&patience=60ms&endpoint=stuck&state=waiting", "", nil},
		{"messages of an endpoint, dead", "GET", "/v1/messages?limit=50&patience=60ms&endpoint=stuck&state=dead", "", nil},
		{"messages of a quiet endpoint, waiting", "GET", "/v1/messages?limit=50&patience=60ms&state=waiting&endpoint=%s", "", endpoint},
		{"messages, dead", "GET", "/v1/messages?limit=50&patience=60ms&state=dead", "", nil},
		{"messages, waiting", "GET", "/v1/messages?limit=50&patience=60ms&state=waiting", "", nil},
		{"messages by id", "GET", "/v1/messages?id=%s", "", pick("msg_%08d", messages)},
		{"messages of a type", "GET", "/v1/messages?limit=50&patience=60ms&type=order.paid", "", nil},
		{"messages of a rare type", "GET", "/v1/messages?limit=50&patience=60ms&type=audit.rare", "", nil},
		{"messages of a key", "GET", "/v1/messages?limit=50&patience=60ms&key=%s", "", pick("customer-%d", 50000)},
		{"messages of an hour", "GET", "/v1/messages?limit=50&patience=60ms&%s", "", hour},
		{"message", "GET", "/v1/messages/%s", "", pick("msg_%08d", messages)},
		{"endpoints", "GET", "/v1/endpoints?limit=50", "", nil},
		{"endpoints, part of an id", "GET", "/v1/endpoints?limit=50&q=%s", "", pick("%04d", 1000)},
		{"endpoints, disabled", "GET", "/v1/endpoints?limit=50&state=disabled", "", nil},
		{"stats", "GET", "/v1/stats?limit=50", "", nil},
		{"stats, deep", "GET", "/v1/stats?limit=50&after=%s", "", endpoint},
		{"stats of an endpoint", "GET", "/v1/endpoints/%s/stats", "", endpoint},
		{"stats of stuck", "GET", "/v1/endpoints/stuck/stats", "", nil},
		{"letters", "GET", "/v1/dead-letters?limit=50", "", nil},
		{"letters, newest", "GET", "/v1/dead-letters?limit=50&newest=true", "", nil},
		{"letters, deep", "GET", "/v1/dead-letters?limit=50&after=" + letter, "", nil},
		{"letters of an endpoint", "GET", "/v1/dead-letters?limit=50&destination=%s", "", failing},
		{"letters of stuck", "GET", "/v1/dead-letters?limit=50&destination=stuck&state=dead", "", nil},
		{"letters of stuck, newest", "GET", "/v1/dead-letters?limit=50&destination=stuck&newest=true", "", nil},
		{"letters of no endpoint", "GET", "/v1/dead-letters?limit=50&destination=none", "", nil},
		{"letters by reason", "GET", "/v1/dead-letters?limit=50&state=dead&reason=terminal", "", nil},
		{"letters by a reason that none has", "GET", "/v1/dead-letters?limit=50&state=dead&reason=gone", "", nil},
		{"letters by cause", "GET", "/v1/dead-letters?limit=50&cause=" + cause, "", nil},
		{"letters by state", "GET", "/v1/dead-letters?limit=50&state=discarded", "", nil},
		{"letters of a message", "GET", "/v1/dead-letters?event_id=%s", "", pick("msg_%08d", messages)},
		{"letter", "GET", "/v1/dead-letters/" + letter, "", nil},
		{"letter stats", "GET", "/v1/dead-letters/stats", "", nil},
		{"redrive of a cause, counted", "POST", "/v1/redrives", `{"filter":{"cause":"` + cause + `"},"dry_run":true}`, nil},
		{"redrive of an endpoint, counted", "POST", "/v1/redrives", `{"filter":{"destination":"%s"},"dry_run":true}`, failing},
		{"redrive of a reason, counted", "POST", "/v1/redrives", `{"filter":{"reason":"terminal"},"dry_run":true}`, nil},
		{"redrive of all, counted", "POST", "/v1/redrives", `{"all":true,"dry_run":true}`, nil},
		{"discard of a cause, counted", "POST", "/v1/dead-letters/discard", `{"filter":{"cause":"` + cause + `"},"dry_run":true}`, nil},
		{"discard of a reason, counted", "POST", "/v1/dead-letters/discard", `{"filter":{"reason":"exhausted"},"dry_run":true}`, nil},
		{"redrives", "GET", "/v1/redrives?limit=50", "", nil},
		{"audit", "GET", "/v1/audit?limit=50", "", nil},
		{"audit of a letter", "GET", "/v1/audit?limit=50&target=" + target, "", nil},
		{"audit of an action", "GET", "/v1/audit?limit=50&action=reveal", "", nil},
		{"keys, held", "GET", "/v1/keys?state=held&limit=50", "", nil},
		{"keys, all", "GET", "/v1/keys?limit=50", "", nil},
		{"instances", "GET", "/v1/instances", "", nil},
		{"token", "GET", "/v1/token", "", nil},
	}
}

// pages lists what a reader or an operator opens.
func pages(messages, endpoints int, find func(path, list, field string) string) []call {
	pick := func(format string, of int) func(int) string {
		return func(n int) string { return fmt.Sprintf(format, 1+n*7919%of) }
	}
	endpoint, failing := pick("endpoint-%08d", endpoints), func(n int) string { return fmt.Sprintf("endpoint-%08d", 20*(1+n%(endpoints/20))) }
	letter, cause := find("/v1/dead-letters?limit=1000&state=dead", "dead_letters", "id"), find("/v1/dead-letters?destination=stuck&limit=1", "dead_letters", "cause")
	list := []call{
		{asks: endpoint, path: "/now/webhook:%s"}, {asks: endpoint, path: "/?q=%s"},
		{asks: pick("%d", messages), path: "/messages?after=%s"}, {asks: endpoint, path: "/messages?endpoint=%s"},
		{asks: pick("msg_%08d", messages), path: "/messages?id=%s"}, {asks: pick("customer-%d", 50000), path: "/messages?key=%s"},
		{asks: pick("msg_%08d", messages), path: "/messages/%s"}, {asks: endpoint, path: "/endpoints?after=%s"}, {asks: endpoint, path: "/endpoints/%s"},
		{asks: failing, path: "/dead-letters?destination=%s"}, {asks: failing, path: "/dead-letters/redrive?all=true&destination=%s"},
		{asks: failing, path: "/dead-letters/discard?all=true&destination=%s"}, {asks: failing, path: "/act/send-again?endpoint=%s&state=dead"},
	}
	for _, path := range []string{
		"/", "/?sort=name", "/?sort=name&offset=9000", "/messages", "/messages?endpoint=stuck&state=waiting", "/messages?endpoint=stuck&state=dead",
		"/messages?state=dead", "/messages?type=audit.rare", "/messages?since=72h&until=71h", "/act/cancel?endpoint=stuck&state=waiting",
		"/endpoints", "/endpoints?state=disabled", "/endpoints?q=0042", "/endpoints/stuck", "/dead-letters", "/dead-letters?destination=stuck", "/dead-letters?reason=terminal",
		"/dead-letters?cause=" + cause, "/dead-letters?state=any", "/dead-letters?after=" + letter, "/dead-letters/" + letter,
		"/dead-letters/redrive?all=true&cause=" + cause, "/dead-letters/redrive?all=true&reason=terminal", "/dead-letters/redrive?all=true",
		"/dead-letters/discard?all=true&reason=exhausted", "/redrives", "/audit", "/audit?action=reveal", "/keys", "/keys?state=all",
	} {
		list = append(list, call{path: path})
	}
	for i := range list {
		list[i].name, list[i].method = list[i].path, "GET"
	}
	return list
}

// TestLatency: what the requests of the console's pages take, on SQLite and PostgreSQL, by
// their 50th and 95th percentile of CONSOLE_CALLS calls. API_P95_MS sets the limit that
// fails the test. By default the database and the number of calls are small, and the test
// shows that each call works: README.md has the line for a million messages.
func TestLatency(t *testing.T) {
	c := seed.Config{Messages: number(t, "CONSOLE_MESSAGES", 20_000)}
	c.Endpoints = min(c.Messages/100, 10_000)
	program := os.Getenv("CONSOLE_FORBEAR") // another build of forbear, to compare
	if program == "" {
		program = filepath.Join(t.TempDir(), "forbear")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Dir, build.Env = filepath.Join("..", "..", "cmd", "forbear"), append(os.Environ(), "GOWORK=")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Run("SQLite", func(t *testing.T) {
		name := os.Getenv("CONSOLE_DATABASE") // one that was filled with as many
		if name == "" {
			name = filepath.Join(t.TempDir(), "forbear.db")
			fill(t, name, c)
		}
		measure(t, c, serve(t, program, name))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		s := pgtest.Start(t, "shared_buffers=128MB", "max_wal_size=2GB")
		name := s.Database(t)
		fill(t, name, c)
		measure(t, c, serve(t, program, name))
	})
}

func fill(t *testing.T, name string, c seed.Config) {
	t.Helper()
	began := time.Now()
	if err := seed.Fill(t.Context(), name, c); err != nil {
		t.Fatal(err)
	}
	t.Logf("filled in %v", time.Since(began).Round(time.Millisecond))
}

// number reads a variable of the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// served is a forbear serve with an operator's token and session.
type served struct{ api, console, token, cookie string }

// serve starts forbear serve.
func serve(t *testing.T, program, database string) (s served) {
	t.Helper()
	var at [2]string
	for i := range at {
		port, err := porttest.Pick()
		if err != nil {
			t.Fatal(err)
		}
		at[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	token := exec.Command(program, "token", "create", fmt.Sprintf("op-%d", time.Now().UnixNano()), "--scope", "admin", "--database", database)
	token.Stderr = os.Stderr
	text, err := token.Output()
	if err != nil {
		t.Fatal(err)
	}
	s = served{api: "http://" + at[0], console: "http://" + at[1], token: strings.TrimSpace(string(text))}
	cmd := exec.Command(program, "serve", "--listen", at[0], "--admin", at[1], "--database", database)
	cmd.Dir = t.TempDir()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("serve: %.2000s", log.String())
		}
	})
	for range 600 {
		if r, err := http.Get(s.api + "/v1/openapi.json"); err == nil {
			_ = r.Body.Close()
			s.signIn(t)
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("serve does not respond")
	return s
}

func (s *served) signIn(t *testing.T) {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := client.PostForm(s.console+"/sign-in", url.Values{"token": {s.token}})
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	for _, c := range r.Cookies() {
		if c.Value != "" {
			s.cookie += c.Name + "=" + c.Value + "; "
		}
	}
}

// ask sends a request and returns the status and the body.
func (s *served) ask(t *testing.T, method, at, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Cookie", s.cookie)
	r, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, text
}

// measure calls each operation and logs a row of a table for each.
func measure(t *testing.T, c seed.Config, s served) {
	find := func(path, list, field string) string {
		_, text := s.ask(t, "GET", s.api+path, "")
		var page map[string]json.RawMessage
		var rows []map[string]any
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(page[list], &rows); err != nil || len(rows) == 0 {
			t.Fatalf("%s: %v, %.200s", path, err, text)
		}
		return rows[len(rows)-1][field].(string)
	}
	s.table(t, s.console, pages(c.Messages, c.Endpoints, find), number(t, "PAGE_P95_MS", 0))
	s.table(t, s.api, calls(c.Messages, c.Endpoints, find), number(t, "API_P95_MS", 0))
}

// table logs a row for each call, and fails where one takes longer than the limit.
func (s *served) table(t *testing.T, base string, list []call, limit int) {
	times := number(t, "CONSOLE_CALLS", 5)
	t.Logf("| %-50s | %8s | %8s |", "call", "p50 ms", "p95 ms")
	for _, call := range list {
		var took []float64
		for n := range times {
			path, body := call.path, call.body
			if call.asks != nil {
				path, body = strings.Replace(path, "%s", call.asks(n), 1), strings.Replace(body, "%s", call.asks(n), 1)
			}
			began := time.Now()
			status, text := s.ask(t, call.method, base+path, body)
			took = append(took, float64(time.Since(began).Microseconds())/1000)
			if status != http.StatusOK {
				t.Errorf("%s: %s: %d: %.200s", call.name, path, status, text)
				break
			}
		}
		slices.Sort(took)
		p50, p95 := took[len(took)/2], took[len(took)*95/100]
		t.Logf("| %-50s | %8.1f | %8.1f |", call.name, p50, p95)
		if limit > 0 && p95 > float64(limit) {
			t.Errorf("%s: p95 %.1f ms, want at most %d", call.name, p95, limit)
		}
	}
}
