package serve

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/redistest"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// TestServeSharesItsBudget: two gateways before one dead dependency spend one
// budget. Each alone would have its own three retries of a quiet client.
func TestServeSharesItsBudget(t *testing.T) {
	var sends atomic.Int64
	dead := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sends.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(dead.Close)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(`
service: checkout
dependencies:
  payments:
    url: `+dead.URL+`
    backoff: {base: 1ms, cap: 2ms}
    breaker: {disabled: true}
gateway:
  routes: [{prefix: /, dependency: payments}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	redis := redistest.Database(t)
	const calls, gateways, floor = 5, 2, 3
	made, base := int64(calls*gateways), ""
	for range gateways {
		base = serveForTest(t, "--config", policy, "--fleet-budget", redis)
		time.Sleep(3 * time.Second) // a fresh budget grants nothing for one lease
		for range calls {
			resp, err := http.Get(base)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	}
	for range 20 { // a lease may take longer
		if sends.Load() > made {
			break
		}
		time.Sleep(time.Second)
		resp, err := http.Get(base)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		made++
	}
	if n := sends.Load(); n > made+floor || n == made {
		t.Errorf("%d sends for %d calls, want one to three retries in all", n, made)
	}
	got := clitest.Run(t, Command(), "", "--config", policy, "--fleet-budget", "http://user:secret@127.0.0.1")
	if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, "--fleet-budget") || strings.Contains(got.Errors, "secret") {
		t.Errorf("a URL that is no Redis: %+v", got)
	}
	t.Setenv(envFleetBudget, "http://user:secret@127.0.0.1")
	got = clitest.Run(t, Command(), "", "--config", policy)
	if got.Code != cli.ExitUsage || !strings.Contains(got.Errors, envFleetBudget) || strings.Contains(got.Errors, "secret") {
		t.Errorf("a variable that is no Redis: %+v", got)
	}
	if got := clitest.Run(t, Command(), "", "--help"); strings.Contains(got.Out+got.Errors, "user:") {
		t.Error("help shows the password of the variable")
	}
}

// serveForTest runs serve in this process until the test ends and returns the
// gateway's address.
func serveForTest(t *testing.T, args ...string) string {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan string, 1)
	go func() {
		var out, errs bytes.Buffer
		all := append([]string{"--listen", address, "--admin", "off", "--database", filepath.Join(t.TempDir(), "forbear.db")}, args...)
		Command().Run(ctx, &cli.Streams{Out: &out, Err: &errs}, all)
		done <- errs.String()
	}()
	t.Cleanup(func() { cancel(); <-done })
	for range 2400 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address + "/"
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("serve does not answer: %s", <-done)
	return ""
}

// TestServeLeavesV1ToACatchAll: the delivery API must not swallow the requests
// to /v1 of an upstream behind the route "/".
func TestServeLeavesV1ToACatchAll(t *testing.T) {
	var path atomic.Pointer[string]
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { path.Store(&r.URL.Path) }))
	t.Cleanup(upstream.Close)
	for _, route := range []string{"prefix: /", "host: 127.0.0.1"} {
		policy := filepath.Join(t.TempDir(), "policy.yaml")
		text := "service: checkout\ndependencies: {payments: {url: \"" + upstream.URL + "\"}}\ngateway: {routes: [{" + route + ", dependency: payments}]}\n"
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		path.Store(nil)
		resp, err := http.Get(serveForTest(t, "--config", policy) + "v1/orders")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := path.Load(); got == nil || *got != "/v1/orders" {
			t.Errorf("%s: the upstream saw %v, status %s", route, got, resp.Status)
		}
	}
}
