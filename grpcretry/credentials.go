package grpcretry

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/edge"
)

// holdBack is how long no further handshake is made with an address whose
// certificate was refused. gRPC itself would be back after a second.
const holdBack = 30 * time.Second

// Credentials are transport credentials that remember why handshakes failed.
// gRPC reports a refused certificate as UNAVAILABLE, with the cause in the text
// alone, and goes on connecting; these keep the typed error for the
// interceptors, and hold further handshakes with that address back for half a
// minute, so that a request is not offered again and again to what
// intercepts it. They are safe for concurrent use; clones share what they
// remember. Use them for one connection.
type Credentials struct {
	credentials.TransportCredentials
	memory *memory
	conns  *conns // of the client that they were given to, or nil
}

// memory is what the clones of one Credentials share.
type memory struct {
	refused atomic.Pointer[certificateError] // the last handshake failed so; nil after a good one

	mu   sync.Mutex
	held map[string]held // by address and authority
}

// held is a place with which no handshake is made for a while, and why.
type held struct {
	until time.Time
	err   error
}

// NewCredentials wraps the credentials of a client, such as those of
// credentials.NewTLS. [WithTransportCredentials] does it by itself.
func NewCredentials(tc credentials.TransportCredentials) *Credentials {
	return &Credentials{TransportCredentials: tc, memory: &memory{held: map[string]held{}}}
}

// Clone implements [credentials.TransportCredentials].
func (c *Credentials) Clone() credentials.TransportCredentials {
	return &Credentials{c.TransportCredentials.Clone(), c.memory, c.conns}
}

// ClientHandshake implements [credentials.TransportCredentials].
func (c *Credentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	place := raw.RemoteAddr().String() + " " + authority
	if err := c.memory.heldBack(place, time.Now()); err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		c.memory.record(place, err)
		return conn, info, err
	}
	c.memory.refused.Store(nil)
	conn = &watchedConn{conn, c.memory, place}
	if c.conns != nil {
		conn = c.conns.watch(conn)
	}
	return conn, info, nil
}

// watchedConn sees the server refuse our certificate, which under TLS 1.3
// arrives after the handshake, with the first read.
type watchedConn struct {
	net.Conn
	memory *memory
	place  string
}

// Read learns of alerts. An end of the stream is not a refusal.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && err != io.EOF {
		c.memory.record(c.place, err)
	}
	return n, err
}

// Write looks for the reason of a broken connection where the server may have
// left it: in an alert that is still unread.
func (c *watchedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		var rest [1]byte
		if _, rerr := c.Conn.Read(rest[:]); rerr != nil {
			c.memory.record(c.place, rerr)
		}
	}
	return n, err
}

// record remembers a certificate failure, and nothing else.
func (m *memory) record(place string, err error) {
	f, ok := edge.ClassifyNet(err)
	if !ok || f.Class != forbear.ClassCertificate {
		return
	}
	m.refused.Store(&certificateError{cause: err})
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for p, h := range m.held {
		if !now.Before(h.until) {
			delete(m.held, p)
		}
	}
	m.held[place] = held{now.Add(holdBack), err}
}

// heldBack returns why no handshake is made with a place for now.
func (m *memory) heldBack(place string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.held[place]; ok && now.Before(h.until) {
		return h.err
	}
	return nil
}

// certificateError is gRPC's status together with what it hides. It is a status
// for those who ask for the code, and holds the cause for those who ask for it.
type certificateError struct {
	error // the status
	cause error
}

func (e *certificateError) Unwrap() []error { return []error{e.error, e.cause} }

// explain gives an UNAVAILABLE its cause, when the connection's latest
// handshake was refused over a certificate.
func (c *client) explain(err error) error {
	if c.transport == nil || status.Code(err) != codes.Unavailable {
		return err
	}
	if e := c.transport.memory.refused.Load(); e != nil {
		return &certificateError{err, e.cause}
	}
	return err
}

// tokens are per-RPC credentials that take their token from a
// [credential.Cache]: one fetch at a time, no lock held over the network, no
// global.
type tokens struct {
	source *credential.Cache
	secure bool // gRPC refuses a connection without TLS, where a token could be read
}

// slot learns which token an attempt went out with.
type slot struct{ token credential.Token }

// slotKey is where the context of an attempt has its slot.
type slotKey struct{}

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (t *tokens) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := t.source.Token(ctx)
	if err != nil {
		return nil, tokenError(ctx, err)
	}
	if s, ok := ctx.Value(slotKey{}).(*slot); ok {
		s.token = token
	}
	return map[string]string{"authorization": token.Value}, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (t *tokens) RequireTransportSecurity() bool { return t.secure }

// tokenError keeps gRPC from turning a token that could not be had into
// INTERNAL, which looks like the dependency's fault.
func tokenError(ctx context.Context, err error) error {
	code := codes.Unauthenticated
	if ctx.Err() != nil && !errors.Is(err, credential.ErrRefreshFailed) {
		code = status.FromContextError(ctx.Err()).Code()
	}
	return &refused{err, status.New(code, err.Error())}
}
