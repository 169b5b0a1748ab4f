//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// program returns the path of the built program.
func builtProgram(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// served is a serve in a process of its own.
type served struct {
	*exec.Cmd
	base, admin string
	log         *clitest.Buffer
	ended       chan error
}

var bases = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// run starts cmd, reads its greeting, and sees to its end.
func run(t *testing.T, cmd *exec.Cmd) *served {
	t.Helper()
	s := &served{Cmd: cmd, log: &clitest.Buffer{}, ended: make(chan error, 1)}
	out, err := os.CreateTemp(t.TempDir(), "out") // a file: successors write to it too
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	log, err := os.Create(out.Name() + ".log")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, log
	// A group of its own, so that nothing is left behind when a test fails.
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- cmd.Wait() }()
	stopCopy := make(chan struct{})
	go func() { follow(log, s.log, stopCopy) }()
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
		}
		for _, m := range successors.FindAllStringSubmatch(s.log.String(), -1) {
			killStray(m[1])
		}
		close(stopCopy)
	})
	s.await(t, "the greeting", func() bool {
		text, _ := os.ReadFile(out.Name())
		return strings.Contains(string(text), "forbear gateway on ") && (strings.Contains(string(text), "admin on") || strings.Contains(string(text), "Watch it"))
	})
	text, _ := os.ReadFile(out.Name())
	if line, rest, ok := strings.Cut(string(text), "\n"); ok {
		s.base = bases.FindString(line)
		_, rest, _ = strings.Cut(rest, "admin on ")
		s.admin = bases.FindString(rest)
	}
	return s
}

var successors = regexp.MustCompile(`successor=(\d+)`)

// killStray ends a successor that a failed test has left behind, by its number.
func killStray(pid string) {
	name, err := os.ReadFile("/proc/" + pid + "/comm")
	var n int
	if _, e := fmt.Sscan(pid, &n); err == nil && e == nil && strings.HasPrefix(string(name), "forbear") {
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
}

// follow copies what is written to a file until stop.
func follow(from *os.File, to io.Writer, stop <-chan struct{}) {
	f, err := os.Open(from.Name())
	if err != nil {
		return
	}
	defer f.Close()
	defer from.Close()
	for {
		_, _ = io.Copy(to, f)
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// await waits for what signals and sockets bring about.
func (s *served) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 12_000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not happen:\n%s", what, s.log)
}

// logs waits for a text in the log.
func (s *served) logs(t *testing.T, text string) {
	t.Helper()
	s.await(t, fmt.Sprintf("the line %q", text), func() bool { return strings.Contains(s.log.String(), text) })
}

// signal sends one to the process that was started first.
func (s *served) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// wait waits for the end and returns the exit code.
func (s *served) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-s.ended:
		return s.ProcessState.ExitCode()
	case <-time.After(time.Minute):
		t.Fatalf("the process did not end:\n%s", s.log)
		return 0
	}
}

// policy writes a policy file over an upstream, and returns its path and what
// replaces it.
func policyOver(t *testing.T, upstream, listen string) (path string, write func(listen, dependency string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "policy.yaml")
	write = func(listen, dependency string) {
		text := "dependencies:\n  up: {url: '" + upstream + "'" + dependency + "}\ngateway:\n  listen: " + listen +
			"\n  routes:\n    - {prefix: /, dependency: up}\n"
		if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
	}
	write(listen, "")
	return path, write
}

// serveOver starts serve over an upstream on a free port.
func serveOver(t *testing.T, h http.HandlerFunc, args ...string) *served {
	t.Helper()
	up := httptest.NewServer(h)
	t.Cleanup(up.Close)
	path, _ := policyOver(t, up.URL, "127.0.0.1:0")
	return run(t, exec.Command(builtProgram(t), append([]string{"serve", "--no-delivery", "--config", path}, args...)...))
}

// freeAddress returns a TCP address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
}

// conn is a connection whose loss no client hides: it sends each request once.
type conn struct {
	net.Conn
	in *bufio.Reader
}

// call sends one request and returns the response's status and body, and whether the
// connection is to be closed.
func (c *conn) call(method, path, body string) (status int, text string, over bool, err error) {
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body); err != nil {
		return 0, "", true, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, "", true, err
	}
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), resp.Close, err
}

// dial opens a connection to "tcp ADDRESS" or "unix PATH".
func dial(to string) (*conn, error) {
	network, address, _ := strings.Cut(to, " ")
	c, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

// ask sends one request over a connection of its own.
func ask(to, path string) (status int, body string, over bool, err error) {
	c, err := dial(to)
	if err != nil {
		return 0, "", true, err
	}
	defer c.Close()
	return c.call("GET", path, "")
}
