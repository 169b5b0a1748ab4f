// Package pipetest is a network of connections in memory, which a bubble of virtual time
// knows: a real net/http server accepts what a real client dials.
package pipetest

import (
	"context"
	"net"
	"sync"
)

// Network is a listener, and the way to it.
type Network struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// New returns a network on which nothing listens yet. Make it inside of the bubble.
func New() *Network { return &Network{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Dial opens a connection, once it is accepted. Its form is that of
// [net/http.Transport.DialContext].
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (n *Network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements [net.Listener].
func (n *Network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
