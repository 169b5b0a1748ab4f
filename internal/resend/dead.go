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

// Graves judges the connections of HTTP/2 on which sends have timed out. The zero value is
// ready; it is safe for concurrent use.
type Graves struct {
	mu     sync.Mutex
	next   int
	spared [8]sparing // the latest
}

// sparing is when data had last come over a connection that was found to live.
type sparing struct {
	conn  net.Conn
	heard time.Time
}

// blur is how exactly the system tells when data came.
const blur = 20 * time.Millisecond

// Bury closes the connection of a send that has timed out if it is one of HTTP/2 that has
// been silent since the send got it, and reports whether it was. A server that is slow is
// known by its answer to the ping that net/http sends with the end of such a stream: for
// that it is waited for patience, within ctx. net/http sends none after an answered one
// before data has come, so that a connection that was spared is given three times as long.
// Where the system does not tell, nothing is closed.
func (y *Graves) Bury(ctx context.Context, g *Guard, patience time.Duration) bool {
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
			y.spare(conn, heard)
			return false
		case y.wasSpared(conn, heard) && quiet < 3*now.Sub(since):
			return false
		case !now.Before(end):
			_ = conn.Close()
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(patience/16 + time.Millisecond):
		}
	}
}

func (y *Graves) spare(conn net.Conn, heard time.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	i := slices.IndexFunc(y.spared[:], func(s sparing) bool { return s.conn == conn })
	if i < 0 {
		i = y.next % len(y.spared)
		y.next++
	}
	y.spared[i] = sparing{conn, heard}
}

// wasSpared reports whether nothing has come over a connection since it was spared.
func (y *Graves) wasSpared(conn net.Conn, heard time.Time) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.ContainsFunc(y.spared[:], func(s sparing) bool {
		return s.conn == conn && heard.Sub(s.heard).Abs() < blur
	})
}
