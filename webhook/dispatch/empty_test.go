package dispatch_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// A message without a payload says so by its length (RFC 9110 section 8.6): a server that
// knows no chunks refuses it otherwise.
func TestEmptyPayloadHasALength(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan *http.Request, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			got <- r
		}
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	}()
	guard := webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	d := run(t, &memstore.Store{}, dispatch.Config{Guard: guard}, webhook.Endpoint{ID: "a", URL: "http://" + l.Addr().String()})
	if _, err := d.Accept(t.Context(), webhook.Message{ID: "m", Endpoints: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-got:
		if len(r.TransferEncoding) > 0 || r.Header.Get("Content-Length") != "0" {
			t.Errorf("encoding %v, length %q", r.TransferEncoding, r.Header.Get("Content-Length"))
		}
	case <-time.After(time.Minute):
		t.Error("nothing came")
	}
}
