package serve

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/gateway"
)

// The address of the metrics is open before the database is, and until the end: ready
// goes by what the gateway does, live by nothing.
func TestReadyBeside(t *testing.T) {
	var r readiness
	h := gateway.Health(r.state, http.NotFoundHandler())
	ask := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	for _, step := range []struct {
		do    func()
		code  int
		state string
	}{
		{func() {}, 503, "starting"},
		{func() { r.serving.Store(true) }, 200, "ok"},
		{func() { r.draining.Store(true) }, 503, "draining"},
	} {
		step.do()
		if code, body := ask("GET", "/health/ready"); code != step.code || body != `{"status":"`+step.state+`"}`+"\n" {
			t.Errorf("ready: %d %s, want %d %s", code, body, step.code, step.state)
		}
		if code, _ := ask("GET", "/health/live"); code != 200 {
			t.Errorf("live while it is %s: %d", step.state, code)
		}
	}
	for _, r := range []string{"POST /health/live", "GET /health/", "GET /health/else", "GET /"} {
		method, path, _ := strings.Cut(r, " ")
		if code, _ := ask(method, path); code != 404 {
			t.Errorf("%s: %d", r, code)
		}
	}
}

// Probes need no token, and the page behind them still does.
func TestProbesBesideMetrics(t *testing.T) {
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	beside := closed(t)
	startServe(t, "--config", downPolicy(t, up.URL), "--admin", "off", "--metrics", strings.TrimPrefix(beside, "http://"),
		"--metrics-token-file", clitest.File(t, "token", "a-token-of-the-metrics\n"))
	for path, want := range map[string]int{"/health/live": 200, "/health/ready": 200, "/metrics": 401, "/search/a": 401} {
		if code, body := status(t, "GET", beside+path, ""); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
}

// A process that delivers needs no gateway: its file may be about webhooks alone. One
// that has the section, and no routes in it, is a slip.
func TestDeliveryWithoutRoutes(t *testing.T) {
	database := filepath.Join(t.TempDir(), "forbear.db")
	s := startServe(t, "--config", clitest.File(t, "policy.yaml", "service: checkout\n"), "--database", database, "--listen", "127.0.0.1:0", "--admin", "off")
	for path, want := range map[string]int{"/v1/endpoints": 200, "/health/ready": 200, "/flaky/unstable/1": 404} {
		if code, body := status(t, "GET", s.base+path, ""); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
	slip := clitest.File(t, "policy.yaml", "service: checkout\ngateway:\n  trusted_proxies: [127.0.0.1]\n")
	if got := clitest.Run(t, Command(), "", "--config", slip, "--database", database); !strings.Contains(got.Errors, "it has no gateway.routes") {
		t.Errorf("a gateway without routes: %+v", got)
	}
}
