package keys

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/redisstore"
)

// keyStore is where the records are. Redis and SQL share the two operations
// that the command needs, and differ in the audit trail. The command sees no
// other difference.
type keyStore struct {
	records interface {
		List(context.Context, idempotency.Filter) ([]idempotency.Record, error)
		Resolve(context.Context, idempotency.ID, idempotency.Resolution) error
	}
	audit func(context.Context, queue.Entry) error
	close func() error
}

// openKeyStore opens an SQLite file, a postgres:// URL or a redis:// URL.
// Redis has no audit trail: name and reason are in the resolved record
// alone.
func openKeyStore(ctx context.Context, name, prefix string) (*keyStore, error) {
	// The prefix is how services that share a Redis keep their records
	// apart, so that it has to match the service's own.
	if strings.HasPrefix(name, "redis://") || strings.HasPrefix(name, "rediss://") {
		r, err := redisstore.OpenIdempotency(ctx, name, redisstore.IdempotencyOptions{
			Prefix: prefix, Evicting: true, // an operator writes no new records
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), // its warnings are for the service
		})
		if err != nil {
			return nil, err
		}
		return &keyStore{r, func(context.Context, queue.Entry) error { return nil }, r.Close}, nil
	}
	// Ignoring it would search another service's records without a word.
	if prefix != "" {
		return nil, errors.New("--prefix needs a redis:// URL as --database")
	}
	if err := database.Exists(name); err != nil {
		return nil, err
	}
	db, err := database.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	db.Note(slog.Default())
	return &keyStore{db.Idempotency(), db.DeadLetters().Audit, db.Close}, nil
}
