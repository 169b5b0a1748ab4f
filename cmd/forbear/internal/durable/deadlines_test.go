package durable

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// impatient is a service without deliveries that gives callers little time.
func impatient(t *testing.T, token string) *Service {
	t.Helper()
	o := Options{Database: filepath.Join(t.TempDir(), "forbear.db"), Token: token, Logger: quiet}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.deadlines = deadlines{idle: 50 * time.Millisecond, whole: 200 * time.Millisecond}
	s.Handler = s.handler(o)
	return s
}

// A body that stands still, or only just moves, ends its connection: with a response, and
// without a token as with one.
func TestStalledBodiesEnd(t *testing.T) {
	ringtest.NotQuick(t, "it listens")
	const root = "the operator's own token"
	s := impatient(t, root)
	server := httptest.NewServer(s.Handler)
	t.Cleanup(server.Close) // the parts go on behind this function's end
	for _, c := range []struct {
		name, head, auth string
		status           string
		length           int // the server itself ends a connection that owes it more than 256 KiB
		trickle          bool
	}{
		{"a part of a message", "POST /v1/messages", root, "408", 900_000, false},
		{"a byte at a time", "POST /v1/messages", root, "408", 900_000, true},
		{"without a token", "POST /v1/messages", "wrong", "401", 1000, false},
		{"no such path", "POST /v1/none", root, "404", 1000, false},
		{"where no body belongs", "GET /v1/openapi.json", root, "200", 1000, false},
		{"a wrong method", "DELETE /v1/messages", root, "405", 1000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{\"payload\":\"x", c.head, c.auth, c.length)
			if c.trickle {
				go func() {
					for {
						if _, err := io.WriteString(conn, "x"); err != nil {
							return
						}
						time.Sleep(10 * time.Millisecond)
					}
				}()
			}
			in := bufio.NewReader(conn)
			line, err := in.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+c.status) {
				t.Fatalf("got %q, %v", line, err)
			}
			// A connection that is reset has ended, too.
			if _, err := io.Copy(io.Discard, in); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("the connection goes on: %v", err)
			}
		})
	}
}

// The same over HTTP/2, where the connection goes on with other requests.
func TestStalledBodiesEndOverHTTP2(t *testing.T) {
	ringtest.NotQuick(t, "it listens")
	s := impatient(t, "")
	server := httptest.NewUnstartedServer(s.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body, end := io.Pipe()
	defer func() { _ = end.Close() }()
	go func() { _, _ = io.WriteString(end, `{"payload":"x`) }()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/messages", body)
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("got %s over %s", resp.Status, resp.Proto)
	}
}

// pipes is a listener whose connections hold nothing: what is written has to be read.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A response that is not read ends its connection, whatever it is.
func TestUnreadResponsesEnd(t *testing.T) {
	for name, request := range map[string]string{
		"a document": "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a problem":  "GET /v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a stream":   "GET /v1/dead-letters/export HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := impatient(t, "")
				closed := make(chan struct{})
				var once sync.Once
				server := &http.Server{Handler: s.Handler, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						once.Do(func() { close(closed) })
					}
				}}
				l := make(pipes)
				go func() { _ = server.Serve(l) }()
				client, conn := net.Pipe()
				l <- conn
				_, _ = io.Copy(client, bytes.NewReader([]byte(request)))
				select {
				case <-closed:
				case <-time.After(time.Hour): // of the bubble's
					t.Error("it waits for ever")
				}
				_ = client.Close()
				close(l)
				_ = server.Close()
			})
		})
	}
}
