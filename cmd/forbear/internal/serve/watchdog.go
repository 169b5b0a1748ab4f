package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// watchdog tells systemd that the gateway works, as often as it asks, until ctx ends
// or another process has taken over. It says so after each of the gateway's addresses
// has responded to a request over a connection of its own, and never by the clock
// alone: a process that accepts nothing any more is one to start anew. While it drains
// at its end it need not accept, and TimeoutStopSec= sees to its end.
//
// Dependencies and the database are not asked. They are down at times, and a restart
// would only add to that.
func (s *server) watchdog(ctx context.Context, listeners []net.Listener) {
	every := s.systemd.Watchdog(s.before != nil)
	if every == 0 {
		return
	}
	silent := false
	for ctx.Err() == nil {
		err := s.respond(ctx, listeners, every/4)
		if s.underWay.draining.Load() {
			err = nil
		}
		switch {
		case err == nil:
			s.notify(s.systemd.Alive)
		case ctx.Err() == nil && !silent:
			s.log.Error("the gateway does not respond to itself: systemd is not told that it works", slog.String("error", err.Error()))
		}
		silent = err != nil
		wait.Sleep(ctx, every/4)
	}
}

// respond asks each listener for something, all within a time.
func (s *server) respond(ctx context.Context, listeners []net.Listener, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for _, l := range listeners {
		err := respondsAt(ctx, l.Addr(), s.tls != nil)
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			continue // the look needs a descriptor and a port, and all are with callers who are served
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.Addr(), err)
		}
	}
	return nil
}

// respondsAt asks one address whether the process lives. Behind TLS a handshake is
// enough, also one that ends in an alert: the gateway may demand a certificate.
func respondsAt(ctx context.Context, at net.Addr, secure bool) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, at.Network(), at.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if secure {
		// Whose certificate it is does not matter: it is this process.
		err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) //nolint:gosec
		if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" { // as crypto/tls has it
			return nil
		}
		return err
	}
	// A transport for one request: each look is a new connection, which must be accepted.
	t := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }, DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/health/live", nil)
	if err != nil {
		return err
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return err
	}
	return resp.Body.Close() // any status: a route may take the path
}
