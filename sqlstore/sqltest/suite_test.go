package sqltest

import (
	"testing"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/storetest"
)

// views puts those of a database together that are about one delivery: its
// letter is written with it.
func views(db *sqlstore.DB) storetest.Store {
	return struct {
		*sqlstore.Webhooks
		*sqlstore.DeadLetters
	}{db.Webhooks(), db.DeadLetters()}
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Store {
		return views(open(t, file(t)))
	})
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Store { return views(open(t, pgtest.Database(t))) })
}

func TestSQLiteIdempotency(t *testing.T) {
	t.Parallel()
	storetest.RunIdempotency(t, func(t *testing.T) idempotency.Store {
		return open(t, file(t)).Idempotency()
	})
}

func TestPostgreSQLIdempotency(t *testing.T) {
	t.Parallel()
	storetest.RunIdempotency(t, func(t *testing.T) idempotency.Store {
		url := pgtest.Database(t)
		return openListening(t, url, sqlstore.WithListener(listenTo(url))).Idempotency()
	})
}
