package framing

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// announced says when it has accepted.
type announced struct {
	net.Listener
	accepted chan struct{}
}

func (l announced) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- struct{}{}
	}
	return c, err
}

// TestHandshakeOutlivesItsListener: a connection that was accepted before the end, and
// shakes hands after it, is served.
func TestHandshakeOutlivesItsListener(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := announced{l, make(chan struct{}, 1)}
	config := &tls.Config{Certificates: []tls.Certificate{ca.Issue("gateway", nil).TLS(t)}}
	secured := TLSListener(a, config, func(_ net.Addr, err error) { t.Errorf("the handshake failed: %v", err) })
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	<-a.accepted
	if err := secured.Close(); err != nil {
		t.Fatal(err)
	}
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	shaken := make(chan error, 1)
	go func() {
		shaken <- tls.Client(raw, &tls.Config{RootCAs: ca.Pool(), ServerName: "gateway"}).Handshake()
	}()
	c, err := secured.Accept()
	if err != nil {
		t.Fatalf("it was not handed over: %v", err)
	}
	defer c.Close()
	if err := <-shaken; err != nil {
		t.Errorf("the client: %v", err)
	}
	if _, err := secured.Accept(); err == nil {
		t.Error("there was another one")
	}
}
