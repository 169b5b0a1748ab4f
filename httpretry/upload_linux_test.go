package httpretry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// A slow line takes what was written long after the kernel did: as long as the queue
// moves, the server is not late. One that takes nothing more is.
func TestSlowLine(t *testing.T) {
	t.Parallel()
	const length = 4 << 20
	for _, stops := range []bool{false, true} {
		t.Run(fmt.Sprintf("it stops: %v", stops), func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			done := make(chan struct{})
			defer close(done)
			go func() { // a line: it takes 32 KiB each 20 ms, 2.6 s for all
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
					go func() {
						defer c.Close()
						var block [32 << 10]byte
						for taken := 0; taken < length; {
							if stops && taken > length/4 {
								<-done
								return
							}
							n, err := c.Read(block[:])
							if err != nil {
								return
							}
							taken += n
							time.Sleep(20 * time.Millisecond)
						}
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}()
				}
			}()
			below := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if err == nil {
					_ = c.(*net.TCPConn).SetWriteBuffer(8 << 20) // takes it all at once
				}
				return c, err
			}}
			defer below.CloseIdleConnections()
			p := forbear.Policy{Disabled: true, PerAttempt: time.Second, BodyIdle: time.Second}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+l.Addr().String(), bytes.NewReader(make([]byte, length)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := httpretry.NewTransport(below, quiet(t, p)).RoundTrip(req)
			switch {
			case stops && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("a server that takes nothing more: %v", err)
			case !stops && (err != nil || resp.StatusCode != http.StatusOK):
				t.Errorf("a slow line: %v", err)
			}
		})
	}
}

// A line that stalls the sender again and again is slow all the same.
func TestSlowLineInPieces(t *testing.T) {
	t.Parallel() // it takes as long as the line
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
			go func() {
				defer c.Close()
				buf := make([]byte, 32<<10)
				total := 0
				for total < 1200<<10 {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					total += n
					time.Sleep(200 * time.Millisecond)
				}
				fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}()
		}
	}()
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			_ = c.(*net.TCPConn).SetWriteBuffer(256 << 10)
		}
		return c, err
	}}
	defer tr.CloseIdleConnections()
	p := forbear.Policy{Disabled: true, PerAttempt: time.Second, BodyIdle: time.Second}
	began := time.Now()
	resp, err := httpretry.NewTransport(tr, quiet(t, p)).
		RoundTrip(newRequest(t, http.MethodPut, "http://"+l.Addr().String(), strings.Repeat("x", 1200<<10), ""))
	if err != nil {
		t.Fatalf("after %v, in which the server never stopped reading: %v", time.Since(began), err)
	}
	_ = resp.Body.Close()
}

// A peer that takes nothing has the time of an attempt once.
func TestPeerThatTakesNothing(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
			defer c.Close()
		}
	}()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	const limit = 2 * time.Second
	p := forbear.Policy{Disabled: true, PerAttempt: limit, BodyIdle: limit}
	began := time.Now()
	_, err = httpretry.NewTransport(tr, quiet(t, p)).
		RoundTrip(newRequest(t, http.MethodPut, "http://"+l.Addr().String(), strings.Repeat("x", 200<<10), ""))
	if took := time.Since(began); took > limit*19/10 {
		t.Errorf("took %v under a limit of %v: %v", took, limit, err)
	}
}
