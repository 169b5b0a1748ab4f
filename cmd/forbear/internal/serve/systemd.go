package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/forbear-go/forbear/internal/wait"
)

// notify tells systemd, or whatever else set NOTIFY_SOCKET, how the process fares. It is no
// reason to stop that this fails.
func (s *server) notify(states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		s.log.Warn("systemd was not notified", slog.String("error", err.Error()))
	}
}

// followed reports whether systemd hears of this process, and so follows the main process to
// another number.
func followed() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// watchdogEvery is how often systemd wants to hear that the process works (WatchdogSec=); 0
// is never. successor says that this process has replaced the one that the environment
// names.
func watchdogEvery(successor bool) time.Duration {
	if successor {
		_ = os.Unsetenv("WATCHDOG_PID")
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || !followed() {
		return 0
	}
	return every
}

// watchdog tells systemd that the gateway works, as often as it asks, until ctx ends
// or another process has taken over. It says so after each of the gateway's addresses
// has responded to a request over a connection of its own, and never by the clock
// alone: systemd restarts a process that no longer accepts. While it drains
// at its end it need not accept, and TimeoutStopSec= bounds that.
//
// Dependencies and the database are not asked. They are down at times, and a restart
// would only add to that.
func (s *server) watchdog(ctx context.Context, listeners []net.Listener) {
	every := watchdogEvery(s.before != nil)
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
			s.notify(daemon.SdNotifyWatchdog)
		case ctx.Err() == nil && !silent:
			s.log.Error("the gateway does not respond to its own requests: the systemd watchdog is not notified", slog.String("error", err.Error()))
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
