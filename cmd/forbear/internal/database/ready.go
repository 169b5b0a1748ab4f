package database

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/sqlstore"
)

const (
	// probeEvery is the pause between two probes, and probeTime what one may take.
	probeEvery = 2 * time.Second
	probeTime  = 5 * time.Second
)

// health is what the last probe of a database has found. The zero value is that of one
// that is not watched. It is safe for concurrent use.
type health struct {
	mu     sync.Mutex
	cause  string // why it takes no writes, in a word; "" for that it does
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// Watch probes the database until Close, and logs when it takes no more messages and
// when it does again. It is called once.
func (d *DB) Watch(log *slog.Logger) {
	h := &d.health
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.ended.Go(func() {
		for ctx.Err() == nil {
			d.probe(ctx, log)
			wait.Sleep(ctx, probeEvery)
		}
	})
}

// Ready says whether the database takes messages, as the last probe found it, and if not
// why, in words that anyone may read.
func (d *DB) Ready() (state string, ok bool) {
	d.health.mu.Lock()
	defer d.health.mu.Unlock()
	if d.health.cause == "" {
		return "ok", true
	}
	return "database: " + d.health.cause, false
}

// probe tries once.
func (d *DB) probe(ctx context.Context, log *slog.Logger) {
	within, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := d.Probe(within)
	if ctx.Err() != nil {
		return
	}
	cause := causeOf(err, "not reached")
	h := &d.health
	h.mu.Lock()
	before := h.cause
	h.cause = cause
	h.mu.Unlock()
	switch {
	case cause != "" && before == "":
		log.Error("the database accepts no messages: not ready until it does", slog.String("database", d.name), slog.String("cause", cause), slog.String("error", err.Error()))
	case cause == "" && before != "":
		log.Info("the database accepts messages again: ready", slog.String("database", d.name))
	}
}

// end ends the probes.
func (h *health) end() {
	if h.cancel != nil {
		h.cancel()
	}
	h.ended.Wait()
}

// causes are the codes of PostgreSQL's errors, as far as they say why nothing can be
// written.
var causes = map[string]string{
	"25006": "read-only",
	"42501": "no permission",
	"42P01": "its tables are missing",
	"53100": "disk full",
	"53300": "too many connections",
	"55P03": "locked",
	"57014": "no response in time",
	"57P01": "shutting down",
	"57P03": "starting",
}

// fileCauses are the codes of SQLite's.
var fileCauses = map[int]string{
	5:  "locked by another process", // SQLITE_BUSY
	6:  "locked by another process", // SQLITE_LOCKED
	8:  "read-only",                 // SQLITE_READONLY
	13: "disk full",                 // SQLITE_FULL
}

// Cause returns the reason of an error of whatever works on a database, in a few words
// which hold nothing of the server's or the error's own; "" for none.
func Cause(err error) string { return causeOf(err, "the log says why") }

// causeOf is Cause, with the words for an error that it does not know.
func causeOf(err error, unknown string) string {
	var server interface{ SQLState() string }
	var file interface{ Code() int }
	_, away := errors.AsType[net.Error](err)
	_, refused := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, sqlstore.ErrMoved):
		return "its file was moved, replaced or deleted"
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return "read-only"
	case errors.As(err, &server):
		return cmp.Or(causes[server.SQLState()], "SQLSTATE "+server.SQLState())
	case errors.As(err, &file):
		return cmp.Or(fileCauses[file.Code()&0xff], "the file cannot be written")
	case errors.Is(err, context.DeadlineExceeded):
		return "no response in time"
	case away || refused:
		return "not reached"
	}
	return unknown
}
