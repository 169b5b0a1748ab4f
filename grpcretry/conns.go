package grpcretry

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/errtype"
)

// pings find a connection that went silent under a call that waits without a limit. More
// often than every five minutes no server must take them (gRFC A8): at an interval of
// less than that those of grpc-go, with their defaults, end the connection after a few,
// and all that is on it. On Linux the timeout is also that of sent data that no one
// acknowledges.
var pings = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: unacknowledged}

// unacknowledged is gRPC's own default.
const unacknowledged = 20 * time.Second

// patience bounds the wait for gRPC to leave a connection, which takes it microseconds. A
// call whose own time is over waits, too: the next one of its caller may follow at once.
const patience = time.Second

// conns are the connections of one client. They are safe for concurrent use; the zero
// value is ready.
type conns struct {
	mu   sync.Mutex
	all  map[*conn]struct{}
	gone int64 // when one was last left on which calls were served before, see incidents
}

// incidents is how far apart those are that are taken for connections which went silent: a
// server that does not respond now and then looks the same to one call after the other, and
// is to be counted and bounded as such.
const incidents = 30 * time.Second

// watch returns a connection that can be left.
func (cs *conns) watch(c net.Conn) net.Conn {
	w := newConn(c, cs)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.all == nil {
		cs.all = map[*conn]struct{}{}
	}
	cs.all[w] = struct{}{}
	return w
}

// forget is for a connection that is closed or left.
func (cs *conns) forget(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.all, c)
}

// timedOut takes an attempt whose context has ended. If that was for want of time,
// every connection that has been silent for half as long is taken out of use: the one
// that it went over, which is dead or as good as that, and those which the next attempt
// would find to be as dead. Half, because it may have died just after the attempt began.
// One that was only idle is dialed anew, at no one's cost. It returns once the next
// attempt gets none of them, and whether one that had served calls has gone silent under
// the attempt, which happens to the best of servers.
func (cs *conns) timedOut(attempt context.Context, took time.Duration) (gone bool) {
	if !errors.Is(attempt.Err(), context.DeadlineExceeded) && !errors.Is(context.Cause(attempt), errAttemptTimeout) {
		return false
	}
	leaving, gone := cs.leave(now(), int64(took))
	if len(leaving) == 0 {
		return gone
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, c := range leaving {
		select {
		case <-c.left:
		case <-late.C:
			return gone
		}
	}
	return gone
}

// silenced returns what a timeout is when a connection had gone silent: its retry is
// charged to the budget and not refused by it, and it says nothing against the dependency.
// Otherwise the calls that met one silence together would spend the budget and open the
// breaker.
func silenced(f forbear.Failure, gone bool) forbear.Failure {
	if gone && f.Class == forbear.ClassTimeout {
		f.Type = errtype.Silent
	}
	return f
}

// leave has those connections left that were silent for the second half of an attempt.
// All attempts that were under way then have met the same silence.
func (cs *conns) leave(now, took int64) (leaving []*conn, gone bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.all {
		if c.leave(now - took/2) {
			leaving = append(leaving, c)
			if c.served.Load() && (cs.gone == 0 || now-cs.gone >= int64(incidents)) {
				cs.gone = now
			}
		}
	}
	return leaving, cs.gone > now-took
}

// dialer returns the option for a client whose transport credentials are not ours, or
// nil: gRPC looks for a proxy itself only where no one else dials.
func (cs *conns) dialer() grpc.DialOption {
	if os.Getenv("HTTPS_PROXY") != "" || os.Getenv("https_proxy") != "" {
		return nil
	}
	return grpc.WithContextDialer(cs.dial)
}

// dial is gRPC's own dialing, with its own TCP keepalive: that of the system.
func (cs *conns) dial(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", strings.TrimPrefix(path, "//")
	} else if strings.HasPrefix(address, "\x00") {
		network = "unix" // an abstract name
	}
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1},
		Control:         boundUnacknowledged,
	}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return cs.watch(c), nil
}
