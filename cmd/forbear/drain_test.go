//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// held is an upstream that holds calls to /hold until they are let go.
type held struct {
	begun chan string
	free  chan struct{}
}

func newHeld() *held { return &held{make(chan string, 16), make(chan struct{})} }

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/hold") {
		h.begun <- r.URL.Path
		select {
		case <-h.free:
		case <-r.Context().Done():
			return
		}
	}
	_, _ = io.WriteString(w, r.URL.Path)
}

// result is what became of a call.
type result struct {
	status int
	body   string
	err    error
}

func start(to, path string) <-chan result {
	done := make(chan result, 1)
	go func() {
		status, body, _, err := ask(to, path)
		done <- result{status, body, err}
	}()
	return done
}

// SIGTERM: readiness says draining while calls are served and their connections are
// closed; then the listener closes; then the call under way ends well. The metrics
// are there all the while.
func TestDrainOrder(t *testing.T) {
	h := newHeld()
	s := serveOver(t, h.ServeHTTP, "--drain-delay", "8s", "--drain-timeout", "1m")
	to := "tcp " + strings.TrimPrefix(s.base, "http://")
	if status, _, over, err := ask(to, "/health/ready"); status != 200 || over || err != nil {
		t.Fatalf("before: %d, closed %v, %v", status, over, err)
	}
	kept, err := dial(to)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if status, _, over, err := kept.call("GET", "/before", ""); status != 200 || over || err != nil {
		t.Fatalf("before: %d, closed %v, %v", status, over, err)
	}
	call := start(to, "/hold")
	<-h.begun
	s.signal(t, syscall.SIGTERM)
	s.await(t, "draining", func() bool {
		status, body, _, err := ask(to, "/health/ready")
		return err == nil && status == 503 && strings.Contains(body, "draining")
	})
	if status, body, over, err := ask(to, "/late"); status != 200 || body != "/late" || !over || err != nil {
		t.Errorf("while draining: %d %q, closed %v, %v", status, body, over, err)
	}
	if status, body, over, err := kept.call("GET", "/kept", ""); status != 200 || body != "/kept" || !over || err != nil {
		t.Errorf("on a connection that was kept: %d %q, closed %v, %v", status, body, over, err)
	}
	s.await(t, "the end of the listener", func() bool {
		_, err := dial(to)
		return err != nil
	})
	if !strings.Contains(s.log.String(), "delay_ms=8000") {
		t.Errorf("the listener closed without the delay:\n%s", s.log)
	}
	resp, err := http.Get(s.admin + "/metrics")
	if err != nil {
		t.Fatalf("the metrics are gone: %v", err)
	}
	resp.Body.Close()
	close(h.free)
	if r := <-call; r.err != nil || r.status != 200 || r.body != "/hold" {
		t.Errorf("the call under way: %+v", r)
	}
	if code := s.wait(t); code != 0 || strings.Contains(s.log.String(), "cut off") {
		t.Errorf("code %d:\n%s", code, s.log)
	}
}

// A connection that was accepted at the last moment brings its call after that moment.
// So does one to the API's own address, which closes after the gateway's calls.
func TestDrainServesWhoHasJustCome(t *testing.T) {
	h := newHeld()
	up := httptest.NewServer(h)
	defer up.Close()
	path, _ := policyOver(t, up.URL, "127.0.0.1:0")
	own := freeAddress(t)
	s := run(t, exec.Command(builtProgram(t), "serve", "--config", path, "--drain-delay", "0",
		"--database", filepath.Join(t.TempDir(), "forbear.db"), "--api", own))
	to := "tcp " + strings.TrimPrefix(s.base, "http://")
	come, err := dial(to)
	if err != nil {
		t.Fatal(err)
	}
	defer come.Close()
	toAPI, err := dial("tcp " + own)
	if err != nil {
		t.Fatal(err)
	}
	defer toAPI.Close()
	// It refuses callers who know it by another name, which is a response as well.
	if status, _, _, err := ask("tcp "+own, "/v1/endpoints"); status != 403 || err != nil { // accepted after it
		t.Fatalf("the API: %d, %v", status, err)
	}
	call := start(to, "/hold")
	<-h.begun
	s.signal(t, syscall.SIGTERM)
	s.logs(t, "msg=stopping")
	close(h.free)
	if r := <-call; r.err != nil || r.status != 200 {
		t.Errorf("the call under way: %+v", r)
	}
	if status, body, over, err := come.call("GET", "/late", ""); status != 200 || body != "/late" || !over || err != nil {
		t.Errorf("on a connection that had come: %d %q, closed %v, %v", status, body, over, err)
	}
	s.await(t, "the end of the API's listener", func() bool {
		_, err := dial("tcp " + own)
		return err != nil
	})
	if status, _, over, err := toAPI.call("GET", "/v1/endpoints", ""); status != 403 || err != nil {
		t.Errorf("on one to the API: %d, closed %v, %v", status, over, err)
	}
	if code := s.wait(t); code != 0 || strings.Contains(s.log.String(), "cut off") {
		t.Errorf("code %d:\n%s", code, s.log)
	}
}

// Calls that outlast the drain are cut off and counted, upgraded connections too.
func TestDrainCutsStragglers(t *testing.T) {
	for _, flag := range []string{"--drain-timeout", "--drain"} {
		h := newHeld()
		s := serveOver(t, h.ServeHTTP, "--drain-delay", "0", flag, "300ms")
		to := "tcp " + strings.TrimPrefix(s.base, "http://")
		calls := []<-chan result{start(to, "/hold/1"), start(to, "/hold/2"), start(to, "/hold/3")}
		for range calls {
			<-h.begun
		}
		s.signal(t, syscall.SIGTERM)
		for _, c := range calls {
			if r := <-c; r.err == nil && r.status == 200 {
				t.Errorf("%s: a straggler: %+v", flag, r)
			}
		}
		if code := s.wait(t); code != 0 {
			t.Errorf("%s: code %d", flag, code)
		}
		s.logs(t, `msg="current calls were cut off: raise --drain-timeout" calls=3`)
	}
}

// Ctrl-C does not wait for load balancers, and a second signal waits for nothing.
func TestDrainIsCutShort(t *testing.T) {
	h := newHeld()
	s := serveOver(t, h.ServeHTTP, "--drain-delay", "1h", "--drain-timeout", "1h")
	s.signal(t, syscall.SIGINT)
	if code := s.wait(t); code != 0 || strings.Contains(s.log.String(), "delay_ms=") {
		t.Errorf("SIGINT: code %d:\n%s", code, s.log)
	}
	s = serveOver(t, h.ServeHTTP, "--drain-delay", "1h", "--drain-timeout", "1h")
	to := "tcp " + strings.TrimPrefix(s.base, "http://")
	call := start(to, "/hold")
	<-h.begun
	s.signal(t, syscall.SIGTERM)
	s.logs(t, "delay_ms=3600000")
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("a second signal: code %d", code)
	}
	s.logs(t, "second signal")
	s.logs(t, `msg="current calls were cut off: raise --drain-timeout" calls=1`)
	if r := <-call; r.status == 200 {
		t.Errorf("the call under way: %+v", r)
	}
}

// A gateway that is asked to stop before it serves has nothing to drain.
func TestListenFaults(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--listen=", "want HOST:PORT, such as"},
		{"--listen=systemd:", "systemd passed no such socket"},
		{"--listen=unix:/does/not/exist/g.sock", "no such file or directory"},
		{"--socket-mode=rw", "want a mode such as 0660"},
		{"--socket-mode=1777", "want a mode such as 0660"},
	} {
		out, err := exec.Command(builtProgram(t), "serve", "--no-delivery", tt.args).CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %s, %v", tt.args, out, err)
		}
	}
}
