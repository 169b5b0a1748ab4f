package framing

import (
	"io"
	"net"
	"strings"
	"testing"
)

// TestRefusedAtOnce: what a caller sends who must be refused ends by itself. It is
// neither waited for nor passed on.
func TestRefusedAtOnce(t *testing.T) {
	caller, server := net.Pipe()
	defer caller.Close()
	go func() { _, _ = io.WriteString(caller, "GET / HTTP/1.1\n") }()
	got, err := io.ReadAll(&Conn{Conn: server})
	if want := "GET / HTTP/1.1\x00\n\x00\n"; err != nil || !strings.HasPrefix(string(got), want) {
		t.Errorf("got %.40q, %v; want %q", got, err, want)
	}
	if len(got) > 2*maxSpoilt {
		t.Errorf("%d bytes", len(got))
	}
}
