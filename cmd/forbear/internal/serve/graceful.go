package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/forbear-go/forbear/gateway"
)

// graceful is a server whose end no one notices who was let in before. net/http's own
// Shutdown takes the first request of a connection that has just come, and closes it
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

// accept serves those who come to l, until it closes, and reports then.
func (g *graceful) accept(l net.Listener, config *tls.Config, ended chan<- error) {
	g.serving.Go(func() { ended <- g.Serve(gateway.Listener(l, config, g.log)) })
}

// end lets calls end, those of connections that have just come among them: without a
// request such a one is gone with the time that headers may take. The listeners are
// closed already.
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
