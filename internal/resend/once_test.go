package resend_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear/internal/resend"
)

// mortal is a connection that takes nothing any more when it is told so.
type mortal struct {
	net.Conn

	dead *atomic.Bool
}

func (m mortal) Write(p []byte) (int, error) {
	if m.dead.Load() {
		return 0, errors.New("broken pipe")
	}
	return m.Conn.Write(p)
}

// A kept connection that died before anything was written has cost nothing: the request
// goes out on another one, also where one guard was put around another.
func TestOnceOnAConnectionThatDied(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	for _, times := range []int{1, 2} {
		asked.Store(0)
		var latest *atomic.Bool
		var transport http.RoundTripper = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			latest = &atomic.Bool{}
			return mortal{c, latest}, err
		}}
		for range times {
			transport = resend.Once(transport)
		}
		for range 2 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatalf("through %d: %v", times, err)
			}
			_ = resp.Body.Close()
			latest.Store(true)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("through %d: asked %d times", times, n)
		}
	}
}
