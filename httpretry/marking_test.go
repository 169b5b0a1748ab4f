package httpretry_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/httpretry"
)

// able says what a writer can do when it is asked itself.
func able(w http.ResponseWriter) (can struct{ flush, hijack, push, readFrom bool }) {
	_, can.flush = w.(http.Flusher)
	_, can.hijack = w.(http.Hijacker)
	_, can.push = w.(http.Pusher)
	_, can.readFrom = w.(io.ReaderFrom)
	return can
}

// TestInboundKeepsAbilities: libraries for WebSocket ask the writer whether it can be
// hijacked, and refuse every upgrade when it says no.
func TestInboundKeepsAbilities(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		var bare, behind struct{ flush, hijack, push, readFrom bool }
		mux := http.NewServeMux()
		mux.HandleFunc("/bare", func(w http.ResponseWriter, _ *http.Request) { bare = able(w) })
		mux.Handle("/behind", httpretry.Inbound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if behind = able(w); r.Proto != proto {
				t.Errorf("over %s", r.Proto)
			}
			c := http.NewResponseController(w)
			if err := errors.Join(c.SetReadDeadline(time.Now().Add(time.Minute)), c.SetWriteDeadline(time.Now().Add(time.Minute)), c.Flush()); err != nil {
				t.Error(err)
			}
		})))
		srv := httptest.NewUnstartedServer(mux)
		srv.EnableHTTP2 = proto == "HTTP/2.0"
		srv.StartTLS()
		t.Cleanup(srv.Close)
		for _, path := range []string{"/bare", "/behind"} {
			resp, err := srv.Client().Get(srv.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		behind.readFrom = bare.readFrom // there is no harm in it
		if bare != behind {
			t.Errorf("%s: behind Inbound the writer can %+v, without %+v", proto, behind, bare)
		}
	}
}

// TestInboundLetsUpgradesThrough: a handler behind Inbound takes the connection over.
func TestInboundLetsUpgradesThrough(t *testing.T) {
	srv := httptest.NewTLSServer(httpretry.Inbound(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h, ok := w.(http.Hijacker)
		if !ok {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		c, _, err := h.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhi")
	})))
	t.Cleanup(srv.Close)
	raw, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %+v, %v", resp, err)
	}
	if text, _ := io.ReadAll(r); string(text) != "hi" {
		t.Errorf("got %q", text)
	}
}

// TestInboundServesFiles: their bytes arrive, by whatever way.
func TestInboundServesFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.txt")
	want := strings.Repeat("forbear ", 100_000)
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(httpretry.Inbound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })))
	t.Cleanup(srv.Close)
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
