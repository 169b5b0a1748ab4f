package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

// An address whose connections no one accepts is found out, also beside one that works,
// and a response of any status is one.
func TestRespond(t *testing.T) {
	open := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	works, deaf := open(), open()
	srv := gateway.NewServer(http.NotFoundHandler())
	go func() { _ = srv.Serve(works) }()
	defer srv.Close()
	s := &server{}
	if err := s.respond(t.Context(), []net.Listener{works, works}, time.Minute); err != nil {
		t.Errorf("an address that works: %v", err)
	}
	err := s.respond(t.Context(), []net.Listener{works, deaf}, 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), deaf.Addr().String()) {
		t.Errorf("an address that accepts nothing: %v", err)
	}
	_ = deaf.Close()
	if err := s.respond(t.Context(), []net.Listener{deaf}, time.Minute); err == nil {
		t.Error("an address that is closed responds")
	}
}

// Of a gateway that does not respond systemd hears nothing, unless it is about to end.
func TestWatchdogOfADeafGateway(t *testing.T) {
	dir, err := os.MkdirTemp("", "fb") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "notify")
	heard, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	if err := heard.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_PID", "")
	t.Setenv("WATCHDOG_USEC", "400000")
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	lines, logged := io.Pipe()
	s := &server{log: slog.New(slog.NewTextHandler(logged, nil))}
	watched := func(meanwhile func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { s.watchdog(ctx, []net.Listener{deaf}) })
		meanwhile()
		cancel()
		watching.Wait()
	}
	hears := func(want string) {
		b := make([]byte, 64)
		if n, err := heard.Read(b); err != nil || !strings.HasPrefix(string(b[:n]), want) {
			t.Errorf("systemd hears %q, %v, want %s", b[:n], err, want)
		}
	}
	watched(func() {
		if line, err := bufio.NewReader(lines).ReadString('\n'); err != nil || !strings.Contains(line, deaf.Addr().String()) {
			t.Errorf("the log says %q, %v", line, err)
		}
	})
	s.notify("READY=1") // comes first where nothing came before
	hears("READY=1")
	s.underWay.drain()
	watched(func() { hears("WATCHDOG=1") })
}

// The watchdog is for the process that the environment names, and for its successor.
func TestWatchdogEvery(t *testing.T) {
	for _, c := range []struct {
		socket, usec, pid string
		successor         bool
		want              time.Duration
	}{
		{"/nowhere", "", "", false, 0},
		{"/nowhere", "x", "", false, 0},
		{"/nowhere", "30000000", "", false, 30 * time.Second},
		{"/nowhere", "30000000", strconv.Itoa(os.Getpid()), false, 30 * time.Second},
		{"/nowhere", "30000000", "1", false, 0},
		{"/nowhere", "30000000", "1", true, 30 * time.Second},
		{"", "30000000", "", true, 0},
	} {
		t.Setenv("NOTIFY_SOCKET", c.socket)
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if got := watchdogEvery(c.successor); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// Behind TLS a process that refuses the look is one that lives; one that says nothing
// is not.
func TestRespondsBehindTLS(t *testing.T) {
	for name, config := range map[string]*tls.Config{
		"open":                                 {},
		"it demands a certificate":             {ClientAuth: tls.RequireAndVerifyClientCert},
		"it demands a certificate, by TLS 1.2": {ClientAuth: tls.RequireAndVerifyClientCert, MaxVersion: tls.VersionTLS12},
		"it knows no such name": {GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, errors.New("no such name")
		}},
	} {
		srv := httptest.NewUnstartedServer(http.NotFoundHandler())
		srv.TLS, srv.Config.ErrorLog = config, log.New(io.Discard, "", 0)
		srv.StartTLS()
		if err := respondsAt(t.Context(), srv.Listener.Addr(), true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		srv.Close()
	}
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := respondsAt(ctx, deaf.Addr(), true); err == nil {
		t.Error("an address that accepts nothing responds")
	}
}
