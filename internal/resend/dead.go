package resend

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/tcpstate"
	"github.com/forbear-go/forbear/internal/window"
)

// A connection that a firewall has forgotten, or that leads to a host which has failed
// over, takes what is written and gives nothing back. To net/http it is a good one: over
// HTTP/1 those that were idle beside it are used next, and over HTTP/2 it is used by all
// requests for as long as some are under way.

// Reused reports whether the send went over a connection that had served others, and
// since when it had it, from window.Epoch.
func (g *Guard) Reused() (since time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.since, g.reused
}

// Patience is how long a connection of HTTP/2 may take to show life after a time-out, at
// most: a round trip.
const Patience = time.Second

// Bury closes the connection of a send that has timed out if it is one of HTTP/2 that has
// been silent since the send got it, and reports whether it was. A server that is slow is
// known by its answer to the ping that net/http sends with the end of such a stream: for
// that it is waited for patience, within ctx. Where the system does not tell when data
// came, nothing is closed.
func (g *Guard) Bury(ctx context.Context, patience time.Duration) bool {
	silent := g.silent(ctx, patience)
	if silent {
		_ = g.Conn().Close()
	}
	return silent
}

// Heed is for a send that its caller has ended: net/http pings then, too, and what that
// says has to be known to the judgment of later ones.
func (g *Guard) Heed(ctx context.Context, patience time.Duration) { g.silent(ctx, patience) }

// blur is how exactly the system tells when data came.
const blur = 20 * time.Millisecond

func (g *Guard) silent(ctx context.Context, patience time.Duration) bool {
	got, reused := g.Reused()
	conn := g.Conn()
	if !reused || conn == nil || !g.HTTP2() {
		return false
	}
	since, asked := window.Epoch().Add(got), false
	for end := time.Now().Add(patience); ; asked = true {
		quiet, known := tcpstate.Quiet(conn)
		now := time.Now()
		switch heard := now.Add(-quiet); {
		case !known: // or another send has closed it meanwhile
			return asked
		case heard.After(since.Add(blur)):
			living.add(conn, heard)
			return false
		case living.quiet(conn, heard, since, now):
			return false
		case !now.Before(end):
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(patience/16 + time.Millisecond):
		}
	}
}

// living are the connections, of all transports, that were found to live. After an answered
// ping net/http sends none before data has come, so that silence alone shows nothing then: such
// a connection is given up when attempts have timed out on it thrice, one after the other.
var living lives

type lives struct {
	mu    sync.Mutex
	next  int
	conns [64]life // the latest
}

type life struct {
	conn     net.Conn
	heard    time.Time // when data had last come
	timeouts int       // since then
	latest   time.Time // of these
}

func (l *lives) add(conn net.Conn, heard time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.conns[:], func(x life) bool { return x.conn == conn })
	if i < 0 {
		i = l.next % len(l.conns)
		l.next++
	}
	l.conns[i] = life{conn: conn, heard: heard}
}

// quiet reports whether conn is one that may be silent: nothing has come since it was found
// to live. It counts a time-out of a send that began at since; those that were under way at
// another one count with it.
func (l *lives) quiet(conn net.Conn, heard, since, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.conns[:], func(x life) bool { return x.conn == conn && heard.Sub(x.heard).Abs() < blur })
	if i < 0 {
		return false
	}
	x := &l.conns[i]
	if since.After(x.latest) {
		x.timeouts++
		x.latest = now
	}
	return x.timeouts < 3
}
