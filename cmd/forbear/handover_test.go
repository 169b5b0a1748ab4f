//go:build unix

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// load is a crowd of callers, each of which checks every response.
type load struct {
	wg       sync.WaitGroup
	over     chan struct{}
	calls    atomic.Int64
	moved    atomic.Int64 // connections that were closed by a response
	mu       sync.Mutex
	failures []string
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, fmt.Sprintf(format, args...))
}

// lost reports whether a call has failed: the rest of the test cannot go well.
func (l *load) lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.failures) > 0
}

// callers adds n of them. Those that keep their connection use it until a response
// says that it is to be closed.
func (l *load) callers(n int, to string, keep bool) {
	for i := range n {
		l.wg.Go(func() {
			var c *conn
			defer func() {
				if c != nil {
					c.Close()
				}
			}()
			for j := 0; ; j++ {
				select {
				case <-l.over:
					return
				default:
				}
				if c == nil {
					var err error
					if c, err = dial(to); err != nil {
						l.fail("%s: %v", to, err)
						time.Sleep(10 * time.Millisecond)
						continue
					}
				}
				path := fmt.Sprintf("/%d/%d", i, j)
				body := strings.Repeat("b", rand.IntN(4096))
				status, text, over, err := c.call("POST", path, body)
				l.calls.Add(1)
				if err != nil || status != 200 || text != path+body {
					l.fail("%s %s, kept %v: status %d, %d bytes: %.400s, %v", to, path, keep && j > 0, status, len(text), text, err)
					over = true
				}
				if over && keep {
					l.moved.Add(1)
				}
				if over || !keep {
					c.Close()
					c = nil
				}
				time.Sleep(rand.N(60 * time.Millisecond))
			}
		})
	}
}

// end ends the load, and reports what was lost.
func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.over)
	l.wg.Wait()
	t.Logf("%d calls, %d lost; %d connections moved", l.calls.Load(), len(l.failures), l.moved.Load())
	for i, f := range l.failures {
		if i == 10 {
			break
		}
		t.Error(f)
	}
	if l.calls.Load() == 0 {
		t.Error("no call was made")
	}
}

// echo responds with the path and the body.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = io.WriteString(w, r.URL.Path+string(body))
}

// shortFolder returns a folder whose path leaves room for a socket's name.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Three handovers and thirty reloads under the load of hundreds of callers, over TCP
// and a unix socket, with kept connections and new ones, lose no call.
func TestHandoverLosesNoCall(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(echo))
	defer up.Close()
	socket := filepath.Join(shortFolder(t), "g.sock")
	address := freeAddress(t)
	listen := "['" + address + "', 'unix:" + socket + "']"
	path, write := policyOver(t, up.URL, listen)
	// The upstream is in this process, which hundreds of callers keep busy: that it is
	// slow is no call lost.
	policy := func(i int) string {
		return fmt.Sprintf(", max_retries: %d, total: 30s, per_attempt: 29s, connect: %dms", 1+i%3, 20_000+i)
	}
	write(listen, policy(0))
	s := run(t, exec.Command(builtProgram(t), "serve", "--no-delivery", "--config", path, "--reload-every", "0", "--drain-delay", "10s"))
	l := &load{over: make(chan struct{})}
	for _, to := range []string{"tcp " + address, "unix " + socket} {
		l.callers(75, to, true)
		l.callers(25, to, false)
	}
	for i := range 30 {
		write(listen, policy(i+1))
		s.signal(t, syscall.SIGHUP)
		s.await(t, "the reload", func() bool { return strings.Count(s.log.String(), "the policy file is in charge") > i })
		if i%10 == 5 {
			s.signal(t, syscall.SIGUSR2)
			s.await(t, "the handover", func() bool { return strings.Count(s.log.String(), "handed over") == 1+i/10 })
			s.await(t, "the move of the connections", func() bool { return l.moved.Load() >= int64(150*(1+i/10)) || l.lost() })
		}
	}
	l.end(t)
	if l.lost() {
		t.Logf("the log of serve:\n%s", s.log)
	} else if l.moved.Load() < 450 {
		t.Errorf("%d connections moved, want 450: each of 150 thrice", l.moved.Load())
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("code %d:\n%s", code, s.log)
	}
	for _, m := range successors.FindAllStringSubmatch(s.log.String(), -1) {
		if _, err := os.Stat("/proc/" + m[1]); err == nil {
			t.Errorf("the process %s has outlived the first", m[1])
		}
	}
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket's file is left")
	}
	if n := strings.Count(s.log.String(), "cut off"); n > 0 {
		t.Errorf("calls were cut off:\n%s", s.log)
	}
}

// While a new process starts, the one before it serves, and probes at the address of the
// metrics hear so, whichever of the two accepts them.
func TestReadyThroughHandover(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(echo))
	defer up.Close()
	dir := shortFolder(t)
	metrics, token := freeAddress(t), filepath.Join(dir, "token")
	path, _ := policyOver(t, up.URL, "127.0.0.1:0")
	// A start reads the token last of all, and waits for it here.
	if err := syscall.Mkfifo(token, 0o600); err != nil {
		t.Fatal(err)
	}
	tell := func(meanwhile func()) {
		f, err := os.OpenFile(token, os.O_WRONLY, 0) // waits for the reader
		if err != nil {
			t.Error(err)
			return
		}
		meanwhile()
		_, _ = f.WriteString("a-token-of-the-api\n")
		_ = f.Close()
	}
	go tell(func() {})
	s := run(t, exec.Command(builtProgram(t), "serve", "--config", path, "--metrics", metrics, "--drain-delay", "0",
		"--database", filepath.Join(dir, "forbear.db"), "--api", "127.0.0.1:0", "--api-token-file", token))
	s.signal(t, syscall.SIGUSR2)
	tell(func() {
		for range 200 {
			if status, body, _, err := ask("tcp "+metrics, "/health/ready"); status != 200 || err != nil {
				t.Fatalf("during the handover: %d %s, %v", status, body, err)
			}
		}
	})
	s.logs(t, "handed over")
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("code %d:\n%s", code, s.log)
	}
}

// A new process that does not start leaves the old one in charge: with a policy file
// that has faults, with a program that crashes, with one that is gone.
func TestHandoverThatFails(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(echo))
	defer up.Close()
	dir := shortFolder(t)
	socket, copied := filepath.Join(dir, "g.sock"), filepath.Join(dir, "forbear")
	install := func(content []byte) {
		if err := os.WriteFile(copied+".next", content, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(copied+".next", copied); err != nil {
			t.Fatal(err)
		}
	}
	good, err := os.ReadFile(builtProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	install(good)
	path, write := policyOver(t, up.URL, "unix:"+socket)
	s := run(t, exec.Command(copied, "serve", "--no-delivery", "--config", path, "--reload-every", "0", "--drain-delay", "0"))
	for _, tt := range []struct {
		name, want string
		do         func()
	}{
		{"faults of the policy file", "max_retries 9 is outside 1-5", func() { write("unix:"+socket, ", max_retries: 9") }},
		{"an address that is taken", "address already in use", func() { write("['unix:"+socket+"', '"+strings.TrimPrefix(up.URL, "http://")+"']", "") }},
		{"a crash", "exit status 3", func() { write("unix:"+socket, ""); install([]byte("#!/bin/sh\nexit 3\n")) }},
		{"no program", "no such file", func() { _ = os.Remove(copied) }},
	} {
		tt.do()
		before := strings.Count(s.log.String(), "the handover failed")
		s.signal(t, syscall.SIGUSR2)
		s.await(t, tt.name, func() bool { return strings.Count(s.log.String(), "the handover failed") > before })
		_, line, _ := strings.Cut(s.log.String()[strings.LastIndex(s.log.String(), "the handover failed"):], "error=")
		if !strings.Contains(line, tt.want) {
			t.Errorf("%s: the log says %s, want %s", tt.name, line, tt.want)
		}
		if status, body, over, err := ask("unix "+socket, "/x"); status != 200 || body != "/x" || over || err != nil {
			t.Errorf("%s: %d %q, closed %v, %v", tt.name, status, body, over, err)
		}
	}
	// The next one succeeds, and its address is another: the policy file has changed.
	install(good)
	other := filepath.Join(dir, "h.sock")
	write("unix:"+other, "")
	s.signal(t, syscall.SIGUSR2)
	s.logs(t, "handed over")
	if status, body, _, err := ask("unix "+other, "/x"); status != 200 || body != "/x" || err != nil {
		t.Errorf("on the new address: %d %q, %v", status, body, err)
	}
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the file of the socket that is not asked for any more is left")
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("code %d:\n%s", code, s.log)
	}
}

// The first process ends as the last one did: who started it sees a crash.
func TestHandoverPassesTheExitCodeOn(t *testing.T) {
	s := serveOver(t, echo, "--drain-delay", "0")
	s.signal(t, syscall.SIGUSR2)
	s.logs(t, "successor=")
	to := "tcp " + strings.TrimPrefix(s.base, "http://")
	s.await(t, "a response of the successor", func() bool {
		status, _, over, err := ask(to, "/x")
		return status == 200 && !over && err == nil
	})
	var pid int
	if _, err := fmt.Sscan(successors.FindStringSubmatch(s.log.String())[1], &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := s.wait(t); code != 128+9 {
		t.Errorf("code %d, want 137", code)
	}
}

// A SIGHUP in the middle of a handover is for those who serve: it ends neither the
// process that starts nor one that drains.
func TestHangupDuringHandover(t *testing.T) {
	h := newHeld()
	up := httptest.NewServer(h)
	defer up.Close()
	address := freeAddress(t)
	path, _ := policyOver(t, up.URL, address)
	s := run(t, exec.Command(builtProgram(t), "serve", "--no-delivery", "--config", path, "--reload-every", "0", "--drain-delay", "0"))
	var calls []<-chan result
	for i := range 4 { // the first successor starts the second, and drains beside it
		calls = append(calls, start("tcp "+address, fmt.Sprintf("/hold/%d", i)))
		<-h.begun
		s.signal(t, syscall.SIGUSR2)
		s.await(t, "the handover", func() bool {
			s.signal(t, syscall.SIGHUP)
			return strings.Count(s.log.String(), "handed over") > i || strings.Contains(s.log.String(), "the handover failed")
		})
	}
	if strings.Contains(s.log.String(), "the handover failed") {
		t.Fatalf("a handover failed:\n%s", s.log)
	}
	for range 20 {
		s.signal(t, syscall.SIGHUP)
		time.Sleep(5 * time.Millisecond)
	}
	close(h.free)
	for i, c := range calls {
		if r := <-c; r.err != nil || r.status != 200 {
			t.Errorf("call %d: %+v", i, r)
		}
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("code %d:\n%s", code, s.log)
	}
}

// The first process passes signals on to the last of its successors, also when those in
// between have ended.
func TestSignalsReachTheLastSuccessor(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(echo))
	defer up.Close()
	path, _ := policyOver(t, up.URL, freeAddress(t))
	s := run(t, exec.Command(builtProgram(t), "serve", "--no-delivery", "--config", path, "--reload-every", "0", "--drain-delay", "0"))
	for i := range 2 {
		s.signal(t, syscall.SIGUSR2)
		s.await(t, "the handover", func() bool { return strings.Count(s.log.String(), "handed over") == i+1 })
	}
	first := successors.FindStringSubmatch(s.log.String())[1]
	s.await(t, "the end of the first successor", func() bool { _, err := os.Stat("/proc/" + first); return err != nil })
	s.signal(t, syscall.SIGHUP)
	s.logs(t, "the policy file is in charge")
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("code %d:\n%s", code, s.log)
	}
}
