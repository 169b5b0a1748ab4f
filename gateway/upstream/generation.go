package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// generation is the connections that were made under one state of the certificate
// files. When the files change another one takes its place: a connection of HTTP/2
// that is never idle would otherwise keep the old trust for as long as it lives.
type generation struct {
	transport *http.Transport
	material  *certfile.Material
	retired   atomic.Bool
	fault     atomic.Pointer[mismatch.Error] // what a connection has found out last
}

// open reads the certificate files, if there are any, and makes the first generation.
func (u *Upstream) open() error {
	c := u.config
	if err := c.TLS.check(); err != nil {
		return err
	}
	material := &certfile.Material{}
	if files := c.TLS.files(); files != (certfile.Files{}) {
		source, err := certfile.Open(files, c.Logger)
		if err != nil {
			return err
		}
		u.files, material = source, source.Current()
	}
	u.now.Store(newGeneration(c, material))
	return nil
}

// newGeneration returns one without connections.
func newGeneration(c Config, m *certfile.Material) *generation {
	g := &generation{transport: newTransport(c), material: m}
	g.secure(c)
	g.listen()
	return g
}

// generation returns the present one. It looks whether the files have changed at most
// once a second.
func (u *Upstream) generation() *generation {
	g := u.now.Load()
	if u.files == nil {
		return g
	}
	m := u.files.Current()
	if m == g.material {
		return g
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if g = u.now.Load(); m != g.material {
		next := newGeneration(u.config, m)
		next.retired.Store(u.closed)
		u.now.Store(next)
		g.retire()
		g = next
	}
	return g
}

// retire closes the connections that no request uses, and lets each other one go with
// its request.
func (g *generation) retire() {
	g.retired.Store(true)
	g.transport.CloseIdleConnections()
}

// end closes what a request leaves behind when no connection is kept any more.
func (g *generation) end() {
	if g.retired.Load() {
		g.transport.CloseIdleConnections()
	}
}

// because adds to an error what a connection has found out since known was loaded.
// What net/http says of a connection that both sides broke off depends on which of
// its goroutines was first.
func (g *generation) because(err error, known *mismatch.Error) error {
	found := g.fault.Load()
	if found == nil || found == known {
		return err
	}
	if _, said := errors.AsType[mismatch.Error](err); said {
		return err
	}
	return fmt.Errorf("%w: %w", *found, err)
}

// ending returns a body whose end is the request's end. A connection that was
// upgraded is written to as well.
func (g *generation) ending(body io.ReadCloser) io.ReadCloser {
	b := &endingBody{ReadCloser: body, g: g}
	if w, ok := body.(io.Writer); ok {
		return &endingConn{b, w}
	}
	return b
}

// endingBody is the body of a request that is under way.
type endingBody struct {
	io.ReadCloser
	g *generation
}

// Close implements [io.Closer].
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.g.end()
	return err
}

// endingConn is that of an upgraded connection.
type endingConn struct {
	*endingBody
	io.Writer
}
