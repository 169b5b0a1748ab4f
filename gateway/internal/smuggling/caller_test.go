package smuggling

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// patience is how long the caller waits for what must come. A probe that has its
// verdict never waits for it.
const patience = time.Minute

// caller is a raw connection to the gateway.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, address string) *caller {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	return &caller{c, bufio.NewReader(c)}
}

// send writes bytes as they are. The gateway may hang up before all of a refused
// request has come.
func (c *caller) send(text string) { _, _ = io.WriteString(c, text) }

// read reads one response: interim ones are responses of their own.
func (c *caller) read(method string) (message, error) { return readMessage(c.in, method) }

// rest waits for the connection's end and returns what comes before it.
func (c *caller) rest() (text string, closed bool) {
	left, err := io.ReadAll(c.in)
	e, ok := err.(net.Error)
	return string(left), !ok || !e.Timeout()
}

// methodOf returns the method of a raw request.
func methodOf(text string) string {
	method, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), " ")
	return method
}
