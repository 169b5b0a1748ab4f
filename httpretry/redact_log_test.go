package httpretry_test

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/httpretry"
)

// lockedBuffer may be written to by net/http while the test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// What a server says out of turn reaches no log: net/http alone would print it.
func TestUnsolicitedResponsesAreRedacted(t *testing.T) {
	for _, redact := range []bool{false, true} {
		var out lockedBuffer
		before, flags := log.Writer(), log.Flags()
		log.SetOutput(&out)
		if redact {
			log.SetOutput(httpretry.RedactLog(&out))
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var request [4 << 10]byte
			_, _ = c.Read(request[:])
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokcard=4111111111111111")
			_, _ = io.Copy(io.Discard, c) // until the client hangs up
			_ = c.Close()
		}()
		base := &http.Transport{}
		resp, err := httpretry.NewTransport(base, quiet(t, fast)).
			RoundTrip(newRequest(t, http.MethodGet, "http://"+l.Addr().String(), "", ""))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		log.Print("an ordinary line")
		for range 1000 { // it is printed by a goroutine of its own
			if strings.Contains(out.String(), "Unsolicited") {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		base.CloseIdleConnections()
		log.SetOutput(before)
		log.SetFlags(flags)
		_ = l.Close()
		if got := out.String(); strings.Contains(got, "4111") == redact || !strings.Contains(got, "Unsolicited") || !strings.Contains(got, "an ordinary line\n") {
			t.Errorf("redacted %v: the log says %q", redact, got)
		}
	}
}
