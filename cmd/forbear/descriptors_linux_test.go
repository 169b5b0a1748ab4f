package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/redistest"
)

// open counts the descriptors of a process.
func open(t *testing.T, pid int) (n int, list string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, _ := os.Readlink(filepath.Join(dir, e.Name()))
		list += e.Name() + " " + to + "\n"
	}
	return len(entries), list
}

var goroutineCount = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

// goroutines reads their number off the metrics.
func goroutines(t *testing.T, s *served) int {
	t.Helper()
	resp, err := http.Get(s.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	m := goroutineCount.FindSubmatch(text)
	if err != nil || m == nil {
		t.Fatalf("no go_goroutines: %v", err)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// What 21 reloads replace is closed: the connections of dependencies over HTTP/1 and
// HTTP/2, of their token endpoint and of their health endpoint, and their part in a
// budget of the fleet. (456 descriptors stayed once, after as many reloads.)
func TestReloadsLeaveNothingOpen(t *testing.T) {
	var tokens, probes, http2 atomic.Int64
	hello := func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			http2.Add(1)
		}
		if r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	aside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/health/") {
			probes.Add(1)
			return
		}
		tokens.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "t", "token_type": "Bearer", "expires_in": 3600})
	}))
	defer aside.Close()
	dir := t.TempDir()
	authority := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "policy.yaml")
	write := func(i int) {
		var text strings.Builder
		text.WriteString("service: s\ndependencies:\n")
		for name, url := range map[string]string{"h1": plain.URL, "h2": secure.URL} {
			fmt.Fprintf(&text, "  %s:\n    url: %s\n    connect: %dms\n    per_attempt: 25s\n    total: 30s\n    health: {endpoint: '%s/health/%s%d', interval: 20ms}\n"+
				"    credentials: {token_url: '%s/token', client_id: c%d, client_secret: {env: CLIENT_SECRET}}\n",
				name, url, 1500+i, aside.URL, name, i, aside.URL, i)
		}
		text.WriteString("gateway:\n  listen: 127.0.0.1:0\n  routes:\n    - {prefix: /h1, dependency: h1}\n    - {prefix: /h2, dependency: h2}\n")
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	cmd := exec.Command(builtProgram(t), "serve", "--no-delivery", "--config", path, "--reload-every", "0", "--drain-delay", "0",
		"--fleet-budget", redistest.Database(t))
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority, "CLIENT_SECRET=s")
	s := run(t, cmd)
	clients := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	traffic := func() {
		t.Helper()
		done := make(chan error, 16)
		for i := range cap(done) {
			go func() {
				path := fmt.Sprintf("/h%d/x%d", 1+i%2, i)
				resp, err := clients.Get(s.base + path)
				if err == nil {
					var body []byte
					body, err = io.ReadAll(resp.Body)
					resp.Body.Close()
					if resp.StatusCode != 200 || string(body) != path[3:] {
						err = fmt.Errorf("%s: %d %q", path, resp.StatusCode, body)
					}
				}
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Fatalf("%v\n%s", err, s.log)
			}
		}
	}
	settled := func() {
		t.Helper()
		was := probes.Load()
		s.await(t, "probes", func() bool { return probes.Load() > was+2 })
	}
	traffic()
	settled()
	before, _ := open(t, cmd.Process.Pid)
	busy := goroutines(t, s)
	for i := range 21 {
		write(1 + i)
		s.signal(t, syscall.SIGHUP)
		s.await(t, "the reload", func() bool { return strings.Count(s.log.String(), "the policy file is in charge") > i })
		traffic()
		settled()
	}
	// A burst may have opened a few connections more than the first one did; what
	// stays of 21 generations is hundreds.
	const slack = 16
	after, list := 0, ""
	var running int
	for range 200 {
		after, list = open(t, cmd.Process.Pid)
		running = goroutines(t, s)
		if after <= before+slack && running <= busy+4*slack {
			break
		}
		settled()
	}
	t.Logf("descriptors: %d before, %d after 21 reloads; goroutines: %d and %d; %d tokens, %d of HTTP/2", before, after, busy, running, tokens.Load(), http2.Load())
	if after > before+slack || running > busy+4*slack {
		t.Errorf("%d descriptors and %d goroutines became %d and %d:\n%s", before, busy, after, running, list)
	}
	if tokens.Load() < 42 || http2.Load() < 21 {
		t.Errorf("%d tokens, %d requests over HTTP/2: want those of each generation", tokens.Load(), http2.Load())
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("code %d:\n%s", code, s.log)
	}
}
