package export

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// nginx and HAProxy themselves send what the lists say, and no more.
func TestProxiesBehave(t *testing.T) {
	var mu sync.Mutex
	sends := map[string]int{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sends[r.Header.Get("X-Call")]++
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body) // or the proxy may see a reset instead
		if r.ProtoMinor != 1 || r.Host != "pay.example" || !strings.HasPrefix(r.RequestURI, "/v1/a%2Fb/") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		status := 200
		_, _ = fmt.Sscan(r.URL.Path[len("/v1/a/b/"):], &status)
		w.WriteHeader(status)
	})
	var servers []string
	for range 2 {
		s := httptest.NewServer(handler)
		defer s.Close()
		servers = append(servers, "'"+s.Listener.Addr().String()+"'")
	}
	place := "owner: a, url: 'http://pay.example/v1', endpoints: [" + strings.Join(servers, ", ") + "], "
	large := strings.Repeat("x", 100_000)
	call := 0
	for _, c := range []struct {
		format, policy string
		// How often each request is sent, whose upstreams all fail.
		get, status408, status429, post, keyed, longKey, large int
	}{
		{"nginx", "idempotency: reuse", 2, 1, 2, 1, 1, 1, 2},
		{"nginx", "idempotent: true", 2, 1, 2, 2, 2, 2, 2},
		{"nginx", "disabled: true", 1, 1, 1, 1, 1, 1, 1},
		{"haproxy", "idempotency: reuse", 2, 2, 1, 1, 2, 1, 1},
		{"haproxy", "idempotency: refuse", 2, 2, 1, 1, 1, 1, 1},
		{"haproxy", "idempotent: true", 2, 2, 1, 2, 2, 2, 1},
		{"haproxy", "disabled: true", 1, 1, 1, 1, 1, 1, 1},
	} {
		t.Run(c.format+" "+c.policy, func(t *testing.T) {
			address := started(t, c.format, write(t, c.format, "{"+place+c.policy+"}"))
			for _, r := range []struct {
				method, key, body string
				status, want      int
			}{
				{"GET", "", "", 200, 1},
				{"GET", "", "", 404, 1},
				{"GET", "", "", 503, c.get},
				{"DELETE", "", "", 500, c.get},
				{"GET", "", "", 408, c.status408},
				{"GET", "", "", 429, c.status429},
				{"POST", "", "x", 503, c.post},
				{"PATCH", "", "x", 503, c.post},
				{"POST", "k", "x", 503, c.keyed},
				{"POST", strings.Repeat("k", 65), "x", 503, c.longKey},
				{"PUT", "", large, 503, c.large},
			} {
				call++
				name := fmt.Sprint(call)
				req, err := http.NewRequestWithContext(t.Context(), r.method, fmt.Sprintf("http://%s/a%%2Fb/%d", address, r.status), strings.NewReader(r.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Call", name)
				if r.key != "" {
					req.Header.Set("Idempotency-Key", r.key)
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				mu.Lock()
				got := sends[name]
				mu.Unlock()
				if res.StatusCode != r.status || got != r.want {
					t.Errorf("%s with %d, key %q and %d bytes: %d, sent %d times, want %d", r.method, r.status, r.key, len(r.body), res.StatusCode, got, r.want)
				}
			}
		})
	}
}

// started starts a proxy with what is written for it, and returns its address.
func started(t *testing.T, format string, out *Export) string {
	t.Helper()
	tool := product(t, format)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(porttest.Free(t)))
	dir := t.TempDir()
	path := filepath.Join(dir, "conf")
	config := strings.ReplaceAll(string(out.Config), "127.0.0.1:10000", address)
	args := []string{"-db", "-f", path}
	if format == "nginx" {
		args = []string{"-e", "stderr", "-c", path}
		config = fmt.Sprintf("daemon off; master_process off; pid %s/pid; events {}\nhttp {\naccess_log off; client_body_temp_path %s/body;\n%s}\n", dir, dir, config)
	}
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var said strings.Builder
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s\n%s", said.String(), config)
		}
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address
		}
	}
	t.Fatal("it does not listen")
	return ""
}

// product is the path of nginx or HAProxy.
func product(t *testing.T, format string) string {
	t.Helper()
	tool, err := exec.LookPath(format)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing: apt-get install nginx-light haproxy", format)
		}
		t.Skipf("%s is missing: apt-get install nginx-light haproxy", format)
	}
	return tool
}
