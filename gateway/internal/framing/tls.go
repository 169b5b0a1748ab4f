package framing

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// handshakeTime bounds a handshake. A client that does not come to its end holds no
// one up: handshakes run side by side.
const handshakeTime = 5 * time.Second

// TLSListener returns l with connections over TLS. Those that speak HTTP/2, whose
// frames have one length each, are as net/http wants them; the others are guarded.
// failed is called for each handshake that fails.
func TLSListener(l net.Listener, config *tls.Config, failed func(net.Addr, error)) net.Listener {
	t := &tlsListener{Listener: l, config: config, failed: failed, accepted: make(chan accepted), ended: make(chan struct{})}
	go t.run()
	return t
}

// tlsListener accepts ahead of its caller, which gets connections after their handshake. A connection
// that was accepted before the listener closed is handed over all the same: its client
// knows nothing of the end.
type tlsListener struct {
	net.Listener
	config   *tls.Config
	failed   func(net.Addr, error)
	accepted chan accepted
	ended    chan struct{} // closed when nothing more comes
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// run ends with the listener, and with the handshakes that were under way.
func (t *tlsListener) run() {
	var shaking sync.WaitGroup
	for {
		c, err := t.Listener.Accept()
		if err == nil {
			shaking.Go(func() { t.handshake(c) })
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			break
		}
		t.accepted <- accepted{err: err}
	}
	shaking.Wait()
	close(t.ended)
}

// handshake readies one connection. One that no one accepts in the time of a handshake
// is closed: the server has ended.
func (t *tlsListener) handshake(raw net.Conn) {
	c := tls.Server(raw, t.config)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		t.failed(raw.RemoteAddr(), err)
		inClear(err)
		_ = raw.Close()
		return
	}
	var ready net.Conn = c
	if c.ConnectionState().NegotiatedProtocol != "h2" {
		ready = secured{&Conn{Conn: c}}
	}
	late := time.NewTimer(handshakeTime)
	defer late.Stop()
	select {
	case t.accepted <- accepted{conn: ready}:
	case <-late.C:
		_ = c.Close()
	}
}

// inClear responds to a client that speaks HTTP in clear, as net/http does.
func inClear(err error) {
	e, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || e.Conn == nil {
		return
	}
	switch string(e.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "PATCH", "DELET":
		const response = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
		_ = e.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(e.Conn, response)
	}
}

// Accept implements [net.Listener].
func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-t.accepted:
		return a.conn, a.err
	case <-t.ended:
		return nil, net.ErrClosed
	}
}
