package direct

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// secured gives a transport TLS without HTTP/2, and trust in a server.
func secured(tr *Transport, srv *httptest.Server) {
	config := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"http/1.1"}
	tr.Next.DialTLSContext = (&tls.Dialer{Config: config}).DialContext
	tr.Next.Protocols = &http.Protocols{}
	tr.Next.Protocols.SetHTTP1(true)
}

// TestOverTLS: requests with and without a body use one connection, in either version
// of TLS, and see its state.
func TestOverTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			fmt.Fprint(w, "ok")
		}))
		n := connections(srv)
		srv.TLS = &tls.Config{MaxVersion: version}
		srv.StartTLS()
		tr := newTransport(t)
		secured(tr, srv)
		for i := range 20 {
			r := request(t, "GET", srv.URL)
			if i%2 == 1 {
				r = posting(t, srv.URL, strings.NewReader("body "), 5)
			}
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil || !strings.HasSuffix(string(text), "ok") || resp.TLS == nil || resp.TLS.Version != version {
				t.Errorf("%q, %v, %v", text, err, resp.TLS)
			}
			_ = resp.Body.Close()
		}
		if n.Load() != 1 {
			t.Errorf("%d connections, want 1", n.Load())
		}
		srv.Close()
	}
}

// TestWhatFollowsAResponseOverTLS: in the record of the response, in the next one, or
// after it is no response to another request. What comes when that is on its way no
// client could tell from its response.
func TestWhatFollowsAResponseOverTLS(t *testing.T) {
	trusted := httptest.NewTLSServer(nil)
	defer trusted.Close()
	const evil, requests = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", 5
	for name, send := range map[string]func(c net.Conn, first string){
		"one record":  func(c net.Conn, first string) { _, _ = io.WriteString(c, first+evil) },
		"two records": func(c net.Conn, first string) { _, _ = io.WriteString(c, first); _, _ = io.WriteString(c, evil) },
		"a long record": func(c net.Conn, first string) {
			_, _ = io.WriteString(c, first+strings.Repeat(evil, 200))
		},
	} {
		for _, size := range []int{0, 2, 4096 - 40, 5000} {
			var conns atomic.Int64
			sent := make(chan struct{}, requests)
			first := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("k", size))
			address := raw(t, func(c net.Conn, _ *bufio.Reader) {
				conns.Add(1)
				s := tls.Server(c, trusted.TLS)
				for in := bufio.NewReader(s); ; sent <- struct{}{} {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					send(s, first)
				}
			})
			tr := newTransport(t)
			secured(tr, trusted)
			for range requests {
				_, text, err := read(t, tr, request(t, "GET", strings.Replace(address, "http:", "https:", 1)))
				if err != nil || strings.Contains(text, "evil") {
					t.Errorf("%s, %d: %.20q, %v", name, size, text, err)
				}
				<-sent
			}
			if conns.Load() != requests {
				t.Errorf("%s, %d: %d connections for %d requests", name, size, conns.Load(), requests)
			}
		}
	}
}
