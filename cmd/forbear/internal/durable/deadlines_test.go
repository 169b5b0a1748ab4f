package durable

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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

// served begins to serve and returns what connects. The time is the bubble's: a response that
// comes late on a busy machine ends its connection, too.
func served(t *testing.T, s *Service) (dial func() net.Conn, closed <-chan struct{}) {
	t.Helper()
	l, end := make(pipes), make(chan struct{})
	var once sync.Once
	server := &http.Server{Handler: s.Handler, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols), ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			once.Do(func() { close(end) })
		}
	}}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		close(l)
		_ = server.Close()
	})
	return func() net.Conn {
		client, conn := net.Pipe()
		l <- conn
		t.Cleanup(func() { _ = client.Close() })
		return client
	}, end
}

// A body that stands still, or only just moves, ends its connection: with a response, and
// without a token as with one.
func TestStalledBodiesEnd(t *testing.T) {
	const root = "the operator's own token"
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
			synctest.Test(t, func(t *testing.T) {
				dial, closed := served(t, impatient(t, root))
				conn := dial()
				var writes sync.WaitGroup
				defer writes.Wait()
				defer func() { _ = conn.Close() }()
				writes.Go(func() {
					_, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{\"payload\":\"x", c.head, c.auth, c.length)
					for ; c.trickle && err == nil; time.Sleep(10 * time.Millisecond) {
						_, err = io.WriteString(conn, "x")
					}
				})
				in := bufio.NewReader(conn)
				line, err := in.ReadString('\n')
				if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+c.status) {
					t.Fatalf("got %q, %v", line, err)
				}
				go func() { _, _ = io.Copy(io.Discard, in) }()
				select {
				case <-closed:
				case <-time.After(time.Minute):
					t.Error("it waits for ever")
				}
			})
		})
	}
}

// The same over HTTP/2, where the connection goes on with other requests.
func TestStalledBodiesEndOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, _ := served(t, impatient(t, ""))
		transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) {
			return dial(), nil
		}}
		transport.Protocols.SetUnencryptedHTTP2(true)
		defer transport.CloseIdleConnections()
		body, end := io.Pipe()
		defer func() { _ = end.Close() }()
		go func() { _, _ = io.WriteString(end, `{"payload":"x`) }()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/messages", body)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusRequestTimeout {
			t.Errorf("got %s over %s", resp.Status, resp.Proto)
		}
	})
}

// A response that is not read ends its connection, whatever it is.
func TestUnreadResponsesEnd(t *testing.T) {
	for name, request := range map[string]string{
		"a document": "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a problem":  "GET /v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a stream":   "GET /v1/dead-letters/export HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial, closed := served(t, impatient(t, ""))
				_, _ = io.WriteString(dial(), request)
				select {
				case <-closed:
				case <-time.After(time.Hour): // of the bubble's
					t.Error("it waits for ever")
				}
			})
		})
	}
}
