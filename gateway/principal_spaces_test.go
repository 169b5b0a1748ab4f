package gateway_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

// Spaces around the header of a principal are no part of the name, over HTTP/2 either, where
// net/http leaves them: what begins with one is no caller's name.
func TestPrincipalHasNoSpacesAround(t *testing.T) {
	got := make(chan string, 1)
	principal := gateway.PrincipalHeader("X-Principal")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		who, err := principal(r)
		if err != nil {
			who = "none"
		}
		got <- who
	}))
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	defer s.Close()
	for value, want := range map[string]string{" all": "all", "ann": "ann", "ann b \t": "ann b", "  ": "none", "": "none"} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+h2Frame(4, 0, 0, "")+
			h2Frame(1, 5, 1, h2Field(":method", "POST")+h2Field(":scheme", "http")+h2Field(":path", "/")+h2Field(":authority", "a")+h2Field("x-principal", value)))
		in := bufio.NewReader(c)
		var kinds strings.Builder
		for head := make([]byte, 9); ; {
			if _, err := io.ReadFull(in, head); err != nil {
				break
			}
			kinds.WriteByte('0' + head[3])
			if _, err := in.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2])); err != nil || head[8] == 1 && (head[3] == 1 || head[3] == 3) {
				break
			}
		}
		_ = c.Close()
		select {
		case who := <-got:
			if who != want {
				t.Errorf("%q: got %q, want %q", value, who, want)
			}
		default: // refused as a request is as good
			t.Logf("%q was refused: frames %s", value, kinds.String())
		}
	}
}
