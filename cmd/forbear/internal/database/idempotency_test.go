package database

import (
	"path/filepath"
	"testing"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/pgtest"
	"github.com/forbear-go/forbear/storetest"
)

func TestSQLiteIdempotency(t *testing.T) {
	storetest.RunIdempotency(t, func(t *testing.T) idempotency.Store {
		return openTest(t, filepath.Join(t.TempDir(), "forbear.db")).Idempotency()
	})
}

func TestPostgreSQLIdempotency(t *testing.T) {
	server := pgtest.Start(t)
	storetest.RunIdempotency(t, func(t *testing.T) idempotency.Store {
		return openTest(t, server.Database(t)).Idempotency()
	})
}
