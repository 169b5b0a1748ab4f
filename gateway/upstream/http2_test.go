package upstream_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// TestProtocols: which protocol is spoken, as both ends see it.
func TestProtocols(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	good := ca.Issue("127.0.0.1", nil).TLS(t)
	both := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{good}}, proto)
	one := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{good}, NextProtos: []string{"http/1.1"}}, proto)
	inClear := httptest.NewUnstartedServer(proto)
	inClear.Config.Protocols = &http.Protocols{}
	inClear.Config.Protocols.SetHTTP1(true)
	inClear.Config.Protocols.SetUnencryptedHTTP2(true)
	inClear.Start()
	t.Cleanup(inClear.Close)
	for _, tt := range []struct {
		name, url string
		mode      upstream.HTTP2
		want      string
	}{
		{"auto, a server of both", both, upstream.HTTP2Auto, "HTTP/2.0"},
		{"auto, a server of HTTP/1.1", one, upstream.HTTP2Auto, "HTTP/1.1"},
		{"auto, in clear", inClear.URL, upstream.HTTP2Auto, "HTTP/1.1"},
		{"off", both, upstream.HTTP2Off, "HTTP/1.1"},
		{"only", both, upstream.HTTP2Only, "HTTP/2.0"},
		{"only, in clear", inClear.URL, upstream.HTTP2Only, "HTTP/2.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := reach(t, upstream.Config{TLS: upstream.TLS{CA: file(t, "ca", ca.PEM)}, HTTP2: tt.mode})
			for range 2 {
				resp, err := post(t, u, tt.url, 1000)
				if err != nil {
					t.Fatal(err)
				}
				if got := readAll(t, resp); got != tt.want || resp.Proto != tt.want {
					t.Errorf("the server got %s, the client %s; want %s", got, resp.Proto, tt.want)
				}
			}
		})
	}
}

// TestWebSocketOverTLS: an upgrade has a connection of HTTP/1.1 to a server that
// speaks HTTP/2 as well.
func TestWebSocketOverTLS(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	url := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.Issue("127.0.0.1", nil).TLS(t)}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			proto(w, r)
			return
		}
		c, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := buf.ReadString('\n')
		_, _ = io.WriteString(c, line)
	}))
	u := reach(t, upstream.Config{TLS: upstream.TLS{CA: file(t, "ca", ca.PEM)}})
	resp, err := post(t, u, url, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, resp); got != "HTTP/2.0" {
		t.Errorf("got %s, want HTTP/2.0", got)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	if resp, err = u.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	conn, ok := resp.Body.(io.ReadWriter)
	if !ok || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %s", resp.Status)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, _ := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("got %q", line)
	}
}

// TestUpgradeNeedsHTTP1: where HTTP/2 alone is spoken an upgrade is not sent, whatever
// the protocol, and that tells a breaker nothing of the dependency.
func TestUpgradeNeedsHTTP1(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	secure := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.Issue("127.0.0.1", nil).TLS(t)}}, http.HandlerFunc(proto))
	address := strings.TrimPrefix(secure, "https://")
	for _, tt := range []struct {
		name, url, protocol string
		endpoints           []string
	}{
		{"WebSocket", secure, "websocket", nil},
		{"another", secure, "other/1", nil},
		{"several addresses", secure, "websocket", []string{address, "127.0.0.1:1"}},
		{"in clear", h2c(t, nil), "websocket", nil},
	} {
		u := reach(t, upstream.Config{TLS: upstream.TLS{CA: file(t, "ca", ca.PEM)}, HTTP2: upstream.HTTP2Only, Endpoints: tt.endpoints})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", tt.protocol)
		if resp, err := u.RoundTrip(req); err == nil {
			t.Errorf("%s: %s", tt.name, resp.Status)
			_ = resp.Body.Close()
		} else if f, _ := edge.ClassifyNet(err); f.Class != forbear.ClassTerminal || f.Type != "upgrade_over_http2" || f.Explain() == "" {
			t.Errorf("%s: got %v %q (%s): %v", tt.name, f.Class, f.Type, f.Explain(), err)
		} else if o, counts := edge.Outcome(&f); counts {
			t.Errorf("%s: it counts as %v for the breaker", tt.name, o)
		}
	}
}

// h2c serves HTTP/2 in clear with frames: on gets each request's stream.
func h2c(t *testing.T, on func(c net.Conn, stream uint32)) (url string) {
	t.Helper()
	return "http://" + raw(t, func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, 24)); err != nil {
			return
		}
		frame(c, 4, 0, 0)
		var head [9]byte
		for {
			if _, err := io.ReadFull(c, head[:]); err != nil {
				return
			}
			if _, err := io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
				return
			}
			if head[3] == 1 {
				on(c, binary.BigEndian.Uint32(head[5:]))
			}
		}
	})
}

// frame writes a frame of RFC 9113 section 4.1.
func frame(c net.Conn, kind, flags byte, stream uint32, payload ...byte) {
	b := []byte{0, 0, byte(len(payload)), kind, flags}
	_, _ = c.Write(append(binary.BigEndian.AppendUint32(b, stream), payload...))
}

func refuse(c net.Conn, stream uint32) { frame(c, 3, 0, stream, 0, 0, 0, 7) }

// underRetries returns what the gateway puts above an Upstream.
func underRetries(t *testing.T, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	p := forbear.Policy{MaxRetries: 3, Backoff: forbear.Backoff{Base: time.Millisecond, Cap: 2 * time.Millisecond}}
	p.Budget.MinRetries = 10
	r, err := forbear.New("up", p, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	return httpretry.NewTransport(next, r)
}

// hidden is a layer between the retries and the Upstream, as for spans.
type hidden struct{ http.RoundTripper }

// TestStopInClearSparesOthers: what the retries stop on a connection of HTTP/2 in
// clear leaves it to the other requests on it, whatever is in between.
func TestStopInClearSparesOthers(t *testing.T) {
	for name, wrap := range map[string]func(http.RoundTripper) http.RoundTripper{
		"direct": func(n http.RoundTripper) http.RoundTripper { return n },
		"hidden": func(n http.RoundTripper) http.RoundTripper { return hidden{n} },
	} {
		t.Run(name, func(t *testing.T) {
			held, release := make(chan struct{}), make(chan struct{})
			var first sync.Once
			url := h2c(t, func(c net.Conn, stream uint32) {
				isFirst := false
				first.Do(func() { isFirst = true })
				if !isFirst {
					refuse(c, stream)
					return
				}
				close(held)
				go func() {
					<-release
					frame(c, 1, 5, stream, 0x88)
				}()
			})
			u := wrap(reach(t, upstream.Config{HTTP2: upstream.HTTP2Only}))
			other := make(chan error, 1)
			go func() {
				resp, err := post(t, u, url, 0)
				if err == nil {
					_ = resp.Body.Close()
				}
				other <- err
			}()
			<-held
			for range 5 {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				if resp, err := underRetries(t, u).RoundTrip(req); err == nil {
					_ = resp.Body.Close()
					t.Error("no error")
				}
			}
			close(release)
			if err := <-other; err != nil {
				t.Errorf("another request on the connection died: %v", err)
			}
		})
	}
}

// TestPostsInClearAreSentOnce: a POST without a key is not sent again over HTTP/2, but for
// one that the server has disowned, once; a GET is, as often as the policy allows.
func TestPostsInClearAreSentOnce(t *testing.T) {
	for name, answer := range map[string]func(net.Conn, uint32){
		"REFUSED_STREAM": refuse,
		"GOAWAY":         func(c net.Conn, _ uint32) { frame(c, 7, 0, 0, make([]byte, 8)...) },
		"PROTOCOL_ERROR": func(c net.Conn, s uint32) { frame(c, 3, 0, s, 0, 0, 0, 1) },
		"hung up":        func(c net.Conn, _ uint32) { _ = c.Close() },
	} {
		posts := int64(1)
		if name == "GOAWAY" || name == "REFUSED_STREAM" {
			posts = 2
		}
		for method, want := range map[string]int64{http.MethodPost: posts, http.MethodGet: 4} {
			t.Run(name+" "+method, func(t *testing.T) {
				var sends atomic.Int64
				url := h2c(t, func(c net.Conn, s uint32) { sends.Add(1); answer(c, s) })
				req, _ := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("order"))
				resp, err := underRetries(t, reach(t, upstream.Config{HTTP2: upstream.HTTP2Only})).RoundTrip(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				if n := sends.Load(); n != want || err == nil {
					t.Errorf("%d sends, want %d (%v)", n, want, err)
				}
			})
		}
	}
}
