package smuggling

import (
	"strings"
	"sync"
	"testing"
)

// TestResponseQueueIsNotPoisoned: what an upstream sends after a response is given to
// none of the callers that wait for a connection to it at the same time.
func TestResponseQueueIsNotPoisoned(t *testing.T) {
	evil := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for _, first := range []string{
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
	} {
		t.Run(first, func(t *testing.T) {
			replies := make([]string, 400)
			for i := range replies {
				replies[i] = first + evil
			}
			s := newSite(t, replies)
			address, end := newGateway(t, s, 0)
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					c := dial(t, address)
					defer c.Close()
					for range 50 {
						c.send(get + "\r\n")
						m, err := c.read("GET")
						if err != nil || strings.Contains(m.body, "evil") {
							t.Errorf("%q with %q, %v", m.head, m.body, err)
							return
						}
					}
				})
			}
			callers.Wait()
			end()
			s.end()
		})
	}
}
