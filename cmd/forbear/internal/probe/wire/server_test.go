package wire

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestEndsWithItsConnection: a client that reads to the end of the connection gets there, as
// one of HTTP/1.0 does, or one that asks for the end.
func TestEndsWithItsConnection(t *testing.T) {
	s := listen(t, always(Status(http.StatusOK)))
	for _, request := range []string{"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(conn, request)
		if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 OK\r\n") {
			t.Errorf("%q: %v, %.80q", request, err, got)
		}
	}
}
