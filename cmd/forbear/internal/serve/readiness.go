package serve

import (
	"log/slog"
	"sync/atomic"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
)

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
