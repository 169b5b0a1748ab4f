package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// downPolicy is a policy file before an upstream, with a token's worth of
// endpoint beside it.
func downPolicy(t *testing.T, url string) string {
	return clitest.File(t, "policy.yaml", fmt.Sprintf(`
service: checkout
dependencies:
  search: {url: %s, max_retries: 1, backoff: {base: 1ms, cap: 2ms}}
gateway:
  listen: 127.0.0.1:0
  routes:
    - {prefix: /search, dependency: search}
`, url))
}

func status(t *testing.T, method, address, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// A running serve: metrics to scrape, an override with its actor in the log,
// and a log in JSON.
func TestServeAdmin(t *testing.T) {
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	admin := closed(t)
	s := startServe(t, "--config", downPolicy(t, up.URL), "--admin", strings.TrimPrefix(admin, "http://"), "--log-format", "json")
	if code, _ := status(t, "GET", s.base+"/search/a", ""); code != 404 {
		t.Errorf("through the gateway: %d", code)
	}
	if code, body := status(t, "POST", admin+"/admin/breakers/search", `{"state":"open","actor":"jane"}`); code != 200 {
		t.Errorf("override: %d %s", code, body)
	}
	if code, body := status(t, "GET", s.base+"/search/a", ""); code != 503 || !strings.Contains(body, "breaker_open") {
		t.Errorf("with the breaker open: %d %s", code, body)
	}
	_, page := status(t, "GET", admin+"/metrics", "")
	for _, want := range []string{
		`retry_initial_requests_total{dependency="search",service="checkout"} 1`,
		`retry_incoming_requests_total{service="checkout"} 2`,
		`circuit_breaker_state{dependency="search",service="checkout"} 1`,
		"go_goroutines", "process_cpu_seconds_total",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if code, _ := status(t, "GET", s.base+"/metrics", ""); code != 404 {
		t.Errorf("the gateway's own port answers /metrics with %d", code)
	}
	s.stop()
	overrides := 0
	for line := range strings.Lines(s.log.String()) {
		var e struct{ Msg, Actor, State, Level string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("not JSON: %s", line)
		}
		if e.Msg == "circuit breaker override" && e.Actor == "jane" && e.State == "open" && e.Level == "WARN" {
			overrides++
		}
	}
	if overrides != 1 {
		t.Errorf("%d overrides in the log:\n%s", overrides, s.log)
	}
}

// The console's address goes into links on other machines: one that is none is refused.
func TestConsoleURL(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, address := range []string{"forbear.example.com", "javascript:alert(1)", "http://", "https://me:pw@forbear.example.com/", ":::"} {
		got := clitest.Run(t, Command(), "", "--no-delivery", "--listen", "127.0.0.1:0", "--console-url", address)
		if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "--console-url: want an address such as https://") || strings.Contains(got.Errors, "pw") {
			t.Errorf("%s: %+v", address, got)
		}
	}
}

// Beyond loopback the admin endpoint takes a token, from a file or the
// environment, and demands it.
func TestServeAdminBeyondLoopback(t *testing.T) {
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	config := downPolicy(t, up.URL)
	got := clitest.Run(t, Command(), "", "--config", config, "--admin", "0.0.0.0:0")
	if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "needs a token") {
		t.Errorf("without a token: %+v", got)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := clitest.Run(t, Command(), "", "--config", config, "--admin-token-file", empty); got.Code != cli.ExitUsage {
		t.Errorf("with an empty token file: %+v", got)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cret-s3cret-s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := closed(t)
	port := admin[strings.LastIndexByte(admin, ':'):]
	startServe(t, "--config", config, "--admin", "0.0.0.0"+port, "--admin-token-file", file)
	for _, path := range []string{"/metrics", "/admin/status"} {
		if code, _ := status(t, "GET", admin+path, ""); code != 401 {
			t.Errorf("%s without the token: %d", path, code)
		}
		if code, _ := status(t, "GET", admin+path, "", "Authorization", "Bearer s3cret-s3cret-s3cret"); code != 200 {
			t.Errorf("%s with the token: %d", path, code)
		}
	}
}

func TestServeFlags(t *testing.T) {
	if got := clitest.Run(t, Command(), "", "--log-format", "xml"); got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "text or json") {
		t.Errorf("got %+v", got)
	}
	s := startServe(t, "--listen", "127.0.0.1:0", "--admin", "off")
	if strings.Contains(s.out, "forbear top") {
		t.Errorf("an endpoint that is off is announced: %s", s.out)
	}
}
