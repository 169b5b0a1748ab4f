package httpretry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// line is a server at the end of a slow line: it takes 32 KiB after each pause, and
// responds when it has had as much as it waits for; after stop bytes it takes nothing
// more, when stop is not 0; when it is negative, nothing at all.
type line struct {
	pause             time.Duration
	length, stop      int
	sendQueue, window int // bytes, of the client's and the server's kernel
}

// reach serves the line, and returns its address and the transport that leads to it.
func (l line) reach(t *testing.T) (url string, below *http.Transport) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.(*net.TCPConn).SetReadBuffer(l.window)
			go l.take(c, done)
		}
	}()
	below = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			_ = c.(*net.TCPConn).SetWriteBuffer(l.sendQueue)
		}
		return c, err
	}}
	t.Cleanup(func() {
		below.CloseIdleConnections()
		_ = listener.Close()
		close(done)
	})
	return "http://" + listener.Addr().String(), below
}

func (l line) take(c net.Conn, done <-chan struct{}) {
	defer c.Close()
	var block [32 << 10]byte
	for taken := 0; taken < l.length; {
		if l.stop != 0 && taken >= l.stop {
			<-done
			return
		}
		n, err := c.Read(block[:])
		if err != nil {
			return
		}
		taken += n
		time.Sleep(l.pause)
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// A slow line takes what was written long after the kernel did: as long as the queue
// moves, the server is not late, also when it stalls the sender again and again. One
// that takes nothing more is.
func TestSlowLine(t *testing.T) {
	const ms, kib = time.Millisecond, 1 << 10
	const limit = 3 * time.Second // a busy machine may stand still for a while as well
	for _, tc := range []struct {
		name string
		line line
		late bool
	}{
		{"takes all at once", line{60 * ms, 4096 * kib, 0, 8192 * kib, 64 * kib}, false},
		{"takes it in pieces", line{200 * ms, 1200 * kib, 0, 256 * kib, 64 * kib}, false},
		{"stops", line{20 * ms, 4096 * kib, 1024 * kib, 8192 * kib, 64 * kib}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel() // it takes as long as the line
			url, below := tc.line.reach(t)
			p := forbear.Policy{Disabled: true, PerAttempt: limit, BodyIdle: limit}
			req := newRequest(t, http.MethodPut, url, strings.Repeat("x", tc.line.length), "")
			resp, err := httpretry.NewTransport(below, quiet(t, p)).RoundTrip(req)
			if tc.late != errors.Is(err, context.DeadlineExceeded) || !tc.late && err != nil {
				t.Fatalf("late %v: %v", tc.late, err)
			}
			if err == nil {
				_ = resp.Body.Close()
			}
		})
	}
}

// A peer that takes nothing, and one that takes all and says nothing, have the time of
// an attempt once.
func TestSilentPeers(t *testing.T) {
	const mib = 1 << 20
	for name, l := range map[string]line{
		"takes nothing": {length: 1, stop: -1, sendQueue: mib, window: 4 << 10},
		"takes all":     {length: 2 * mib, stop: mib, sendQueue: 4 * mib, window: mib},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l.isSilent(t, map[bool]int{true: 200 << 10, false: mib}[l.stop < 0])
		})
	}
}

// isSilent uploads so many bytes.
func (l line) isSilent(t *testing.T, length int) {
	t.Helper()
	const limit = 8 * time.Second // twice of it is wrong, and a busy machine is late
	url, below := l.reach(t)
	p := forbear.Policy{Disabled: true, PerAttempt: limit, BodyIdle: limit}
	began := time.Now()
	_, err := httpretry.NewTransport(below, quiet(t, p)).
		RoundTrip(newRequest(t, http.MethodPut, url, strings.Repeat("x", length), ""))
	if took := time.Since(began); took > limit*19/10 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("took %v under a limit of %v: %v", took, limit, err)
	}
}
