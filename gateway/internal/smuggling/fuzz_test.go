package smuggling

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzRequests: the upstream never gets more requests than net/http's own parser
// sees in the same bytes, nor any that a strict reader refuses.
func FuzzRequests(f *testing.F) {
	for _, s := range sections {
		for _, p := range s.probes {
			if !s.once && len(p.send) < 4<<10 {
				f.Add(p.send, uint8(0))
				f.Add(firstRequest+p.send, uint8(len(p.send)/2))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string, cut uint8) {
		if len(text) > 16<<10 {
			t.Skip()
		}
		s := newSite(t, nil)
		address, end := newGateway(t, s, int(cut%3))
		c := dial(t, address)
		at := min(int(cut), len(text))
		c.send(text[:at])
		c.send(text[at:])
		_ = c.Conn.(interface{ CloseWrite() error }).CloseWrite()
		if _, over := c.rest(); !over {
			t.Error("the gateway does not end the connection")
		}
		_ = c.Close()
		end()
		s.end()
		if s.strict != nil {
			t.Errorf("the upstream was sent what is %v", s.strict)
		}
		if got, most := len(s.requests), requestsIn(text); got > most {
			t.Errorf("the upstream got %d requests, net/http sees %d: %s", got, most, lines(s.requests))
		}
	})
}

// requestsIn counts the complete requests that net/http reads.
func requestsIn(text string) (n int) {
	r := bufio.NewReader(strings.NewReader(text))
	for {
		// net/http's server passes over empty lines after a POST. To do so always can
		// only find more.
		for b, _ := r.Peek(1); len(b) > 0 && (b[0] == '\r' || b[0] == '\n'); b, _ = r.Peek(1) {
			_, _ = r.Discard(1)
		}
		req, err := http.ReadRequest(r)
		if err != nil {
			return n
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return n
		}
		n++
	}
}
