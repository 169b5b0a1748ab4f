package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/gateway"
)

// graceful is a server that ends without an error for any caller that has connected before.
// net/http's own Shutdown takes the first request of a new connection, and closes that
// without a response.
type graceful struct {
	*http.Server
	log     *slog.Logger
	serving sync.WaitGroup
	fresh   sync.Map // connections that no request has come over yet
}

func newGraceful(h http.Handler, log *slog.Logger) *graceful {
	g := &graceful{Server: gateway.NewServer(h), log: log}
	g.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	g.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			g.fresh.Store(c, nil)
		} else {
			g.fresh.Delete(c)
		}
	}
	return g
}

// accept serves the connections of l until it closes, and then reports to ended.
func (g *graceful) accept(l net.Listener, config *tls.Config, ended chan<- error) {
	g.serving.Go(func() { ended <- g.Serve(gateway.Listener(l, config, g.log)) })
}

// end lets calls finish, also those of new connections: one without a request is closed when
// the time for headers is over. The listeners are closed already.
func (g *graceful) end(ctx context.Context) error {
	g.serving.Wait()
	_ = waitUntil(ctx, func() bool { return !g.expects() })
	return g.Shutdown(ctx)
}

// expects reports whether a request is still to come over a new connection.
func (g *graceful) expects() (some bool) {
	g.fresh.Range(func(any, any) bool { some = true; return false })
	return some
}

// readiness says whether callers should be sent to this process: /health/ready. It is safe
// for concurrent use.
type readiness struct {
	serving  atomic.Bool // the gateway accepts calls
	draining atomic.Bool // the end has begun; calls are still served
	store    atomic.Pointer[database.DB]
}

// state returns whether this process is ready, and if not why, in a word. The address of the
// metrics asks before the database is open, and to the very end.
func (r *readiness) state() (state string, ok bool) {
	switch db := r.store.Load(); {
	case r.draining.Load():
		return "draining", false
	case !r.serving.Load():
		return "starting", false
	case db != nil:
		return db.Ready()
	}
	return "ok", true
}

// follow makes readiness depend on a database, until that is closed: a caller may be told
// that something is stored.
func (r *readiness) follow(db *database.DB, log *slog.Logger) {
	db.Watch(log)
	r.store.Store(db)
}
