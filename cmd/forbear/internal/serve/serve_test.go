package serve

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// serving is a serve that runs in this process.
type serving struct {
	base string // http://127.0.0.1:port
	out  string // up to the blank line or the end of the greeting
	log  *clitest.Buffer
	stop func() int
}

// startServe runs serve with args until stop is called or the test ends.
func startServe(t *testing.T, args ...string) *serving {
	t.Helper()
	s := begin(t, args...)
	if s.base = addressPattern.FindString(s.out); s.base == "" {
		t.Fatalf("no address in %q", s.out)
	}
	return s
}

// startAt is startServe for one whose greeting names an address that it cannot be
// reached by, such as 0.0.0.0: base is one that it can.
func startAt(t *testing.T, base string, args ...string) *serving {
	t.Helper()
	s := begin(t, args...)
	s.base = base
	return s
}

// begin runs serve and waits for its greeting.
func begin(t *testing.T, args ...string) *serving {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, out := io.Pipe()
	s := &serving{log: &clitest.Buffer{}}
	code := make(chan int, 1)
	go func() {
		code <- Command().Run(ctx, &cli.Streams{Out: out, Err: s.log}, args)
		out.Close()
	}()
	s.stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { s.stop() })
	s.greeting(t, read)
	return s
}

var addressPattern = regexp.MustCompile(`https?://127\.0\.0\.1:\d+`)

// greeting reads what serve prints when it is ready.
func (s *serving) greeting(t *testing.T, r io.Reader) {
	t.Helper()
	first := make([]byte, 4096)
	n, err := r.Read(first)
	if err != nil {
		t.Fatalf("serve did not start: %v: %s", err, s.log)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	s.out = string(first[:n])
}

// sampleReply is what the flaky upstream answers.
type sampleReply struct {
	Attempt int    `json:"attempt"`
	Method  string `json:"method"`
	Key     string `json:"idempotency_key"`
}

// try does what one printed curl command does.
func try(t *testing.T, command string) (status int, body sampleReply) {
	t.Helper()
	method, header, address := http.MethodGet, http.Header{}, ""
	args := clitest.Words(command)
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-i":
		case "-X":
			i++
			method = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		default:
			address = args[i]
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return resp.StatusCode, body
}

func curls(t *testing.T, out string) (found []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "curl ") {
			found = append(found, line)
		}
	}
	if len(found) != 3 {
		t.Fatalf("%d commands to try, want 3, in:\n%s", len(found), out)
	}
	return found
}

// The three commands of the sample work as printed, and show a retry each.
func TestServeSample(t *testing.T) {
	s := startServe(t, "--listen", "127.0.0.1:0")
	for i, command := range curls(t, s.out) {
		begin := time.Now()
		status, body := try(t, command)
		want := []int{3, 2, 2}[i]
		if status != 200 || body.Attempt != want {
			t.Errorf("%s: got %d from attempt %d, want 200 from attempt %d", command, status, body.Attempt, want)
		}
		if i == 1 && time.Since(begin) < 2*time.Second {
			t.Errorf("%s: answered after %v, before Retry-After", command, time.Since(begin))
		}
		if i == 2 && (body.Method != "POST" || body.Key != "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2") {
			t.Errorf("%s: got %+v", command, body)
		}
	}
	if code := s.stop(); code != 0 {
		t.Errorf("code %d", code)
	}
	log := s.log.String()
	for _, field := range []string{
		"msg=retry", "correlation_id=", "dependency=flaky", "attempt=2", "max_attempts=4", "backoff_ms=",
		"error_type=http_503", "error_type=http_429", "idempotency_key=7c4a8d09",
	} {
		if !strings.Contains(log, field) {
			t.Errorf("the log lacks %s:\n%s", field, log)
		}
	}
}

func TestServePolicyFile(t *testing.T) {
	var calls atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, r.RequestURI)
	}))
	defer up.Close()
	s := startServe(t, "--config", clitest.File(t, "policy.yaml", `
dependencies:
  search:
    url: `+up.URL+`/v2
    max_retries: 7
    backoff: {base: 1ms}
waivers:
  - {rule: R-2, dependency: search, reason: approved, expires: 2099-12-31}
gateway:
  listen: 127.0.0.1:0
  routes:
    - {prefix: /search, dependency: search}
`))
	resp, err := http.Get(s.base + "/search/a?q=secret")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if string(body) != "/v2/a?q=secret" || calls.Load() != 2 {
		t.Errorf("got %d %q after %d requests", resp.StatusCode, body, calls.Load())
	}
	if code := s.stop(); code != 0 {
		t.Errorf("code %d", code)
	}
	if log := s.log.String(); !strings.Contains(log, "max_attempts=8") || strings.Contains(log, "secret") {
		t.Errorf("log: %s", log)
	}
}

// TestServeWaitHeaders: the gateway heeds the headers that a policy names. One that asks
// for more than a call has ends the call at once.
func TestServeWaitHeaders(t *testing.T) {
	var calls atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("X-Rate-Limit-Reset", "4102444800") // 2100
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer up.Close()
	s := startServe(t, "--config", clitest.File(t, "policy.yaml", `
dependencies:
  search:
    url: `+up.URL+`
    backoff: {base: 1ms}
    wait_headers: {x-rate-limit-reset: unix}
gateway:
  listen: 127.0.0.1:0
  routes:
    - {prefix: /search, dependency: search}
`))
	resp, err := http.Get(s.base + "/search")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || calls.Load() != 1 {
		t.Errorf("got %d after %d requests, want the 429 after one", resp.StatusCode, calls.Load())
	}
	if log := s.log.String(); !strings.Contains(log, "after_exceeds_deadline") {
		t.Errorf("log: %s", log)
	}
	s.stop()
}

func TestServeFaults(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	bad := clitest.File(t, "policy.yaml", "dependencies:\n  a: {max_retries: 9, total: 1h}\n  b: {kind: grcp}\ngateway:\n  routes:\n    - {prefix: /a, dependency: a}\n")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"faults", []string{"--config", bad}, bad + `:2:20: a: max_retries 9 is outside 1-5 (R-2)
` + bad + `:2:30: a: total 1h0m0s is over 30s for kind sync (R-3)
` + bad + `:3:13: kind is "grcp": did you mean grpc?
` + bad + `:6:7: dependency a of this route has no url: add one, such as url: https://a.internal
`},
		{"no routes", []string{"--no-delivery", "--config", clitest.File(t, "policy.yaml", "service: a\n")}, "has no gateway.routes, so there is nothing to serve"},
		{"no file", []string{"--config", "/does/not/exist"}, "no such file"},
		{"address taken", []string{"--listen", taken.Listener.Addr().String()}, "address already in use: stop the process that listens there, or choose another address with --listen"},
		{"a policy file without its flag", []string{bad}, "name the policy file with --config " + bad},
		{"no policy file", []string{"--config", bad + ".none"}, "no such file or directory: write one with forbear init"},
		{"admin address taken", []string{"--listen", "127.0.0.1:0", "--admin", taken.Listener.Addr().String()}, "--admin: listen tcp " + taken.Listener.Addr().String()},
		{"api address taken", []string{"--listen", "127.0.0.1:0", "--admin", "off", "--database", filepath.Join(t.TempDir(), "a.db"), "--api", taken.Listener.Addr().String()}, "--api: listen tcp " + taken.Listener.Addr().String()},
		{"no folder", []string{"--listen", "unix:/does/not/exist.sock", "--admin", "off"}, "unix:/does/not/exist.sock: the folder /does/not does not exist: create it first"},
		{"no address", []string{"--listen", "8080"}, "want HOST:PORT, such as 127.0.0.1:8080"},
	} {
		got := clitest.Run(t, Command(), "", tt.args...)
		if got.Code != cli.ExitUsage || got.Out != "" || !strings.Contains(got.Errors, tt.want) {
			t.Errorf("%s: got %+v, want %s", tt.name, got, tt.want)
		}
	}
}
