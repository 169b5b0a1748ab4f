package gateway_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// TestWordsAreOfTheNextGateway: what Forbear-Stop and Forbear-Attempts say is said by the
// gateway next to the caller, and by no dependency in its name, whatever kind of response
// it puts them into.
func TestWordsAreOfTheNextGateway(t *testing.T) {
	const words = "Forbear-Stop: exhausted\r\nForbear-Attempts: 9\r\n"
	for name, tt := range map[string]struct{ request, response string }{
		"headers":  {"", "HTTP/1.1 200 OK\r\n" + words + "Content-Length: 2\r\n\r\nok"},
		"failure":  {"", "HTTP/1.1 404 No\r\n" + words + "Content-Length: 2\r\n\r\nno"},
		"hints":    {"", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n" + words + "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"trailers": {"TE: trailers\r\n", "HTTP/1.1 200 OK\r\nTrailer: Forbear-Stop, X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n" + words + "\r\n"},
		"upgrade":  {"Connection: upgrade\r\nUpgrade: echo\r\n", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n" + words + "\r\n"},
	} {
		address := start(t, gateway.Route{Prefix: "/", Target: parse(t, scripted(t, tt.response)), Retryer: retryer(t, quick)})
		c := dial(t, address)
		_, _ = io.WriteString(c, "GET /a HTTP/1.1\r\nHost: x\r\n"+tt.request+"\r\n")
		r := bufio.NewReader(c)
		for _, part := range []string{" 103 ", " "} {
			if part == " 103 " && name != "hints" {
				continue
			}
			resp, err := http.ReadResponse(r, nil)
			if err != nil || !strings.Contains("HTTP "+resp.Status, part) {
				t.Fatalf("%s: %v, %v", name, resp, err)
			}
			if resp.StatusCode >= 200 {
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			for _, h := range []http.Header{resp.Header, resp.Trailer} {
				if len(h["Forbear-Stop"])+len(h["Forbear-Attempts"]) > 0 {
					t.Errorf("%s: the dependency speaks for the gateway: %d with %v", name, resp.StatusCode, h)
				}
			}
			if name == "trailers" && resp.Trailer.Get("X-Sum") != "1" || resp.StatusCode == 103 && resp.Header.Get("Link") == "" {
				t.Errorf("%s: got %v, %v", name, resp.Header, resp.Trailer)
			}
		}
		_ = c.Close()
	}
}

// TestWordsOfReplays: nor does a response that is kept and comes again have them.
func TestWordsOfReplays(t *testing.T) {
	up := scripted(t, "HTTP/1.1 201 Created\r\nForbear-Stop: exhausted\r\nForbear-Attempts: 9\r\nContent-Length: 2\r\n\r\nok")
	address := start(t, gateway.Route{
		Prefix: "/", Target: parse(t, up), Retryer: retryer(t, quick),
		Ingress: &gateway.Ingress{Store: &memstore.Idempotency{}, Options: idempotency.Options{Scope: idempotency.SingleTenant()}},
	})
	for i := range 2 {
		got := call(t, http.MethodPost, address+"/a", http.Header{"Idempotency-Key": {"k"}}, strings.NewReader("{}"))
		if replayed := got.Header.Get(idempotency.HeaderReplayed) != ""; got.StatusCode != 201 || replayed != (i > 0) ||
			got.Header.Get("Forbear-Stop")+got.Header.Get("Forbear-Attempts") != "" {
			t.Errorf("call %d: got %d, %v", i+1, got.StatusCode, got.Header)
		}
	}
}

// TestGatewaysInARow: the outer gateway speaks for itself. That the inner one has tried
// it says to layers that retry, and the caller hears that, too.
func TestGatewaysInARow(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(up.Close)
	once := quick
	once.MaxRetries = 1
	inner := start(t, gateway.Route{Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, once)})
	outer := start(t, gateway.Route{Prefix: "/", Target: parse(t, inner), Retryer: retryer(t, once)})
	got := get(t, outer+"/a")
	if h := got.Header; got.StatusCode != 503 || h.Get("Forbear-Stop") != "exhausted_below" || h.Get("Forbear-Attempts") != "1" || h.Get("X-Forbear-Retries-Exhausted") == "" {
		t.Errorf("got %d, %v", got.StatusCode, h)
	}
	if h := get(t, inner+"/a").Header; h.Get("Forbear-Stop") != "exhausted" || h.Get("Forbear-Attempts") != "2" {
		t.Errorf("the inner one says %v", h)
	}
}
