package libs

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"
)

// A schedule that a field keeps is judged by those that read the field.

type lock struct {
	db          *sql.DB
	taken, sent retry.Backoff
}

func newLock(db *sql.DB) *lock {
	return &lock{
		db:    db,
		taken: retry.WithMaxRetries(60, retry.NewConstant(5*time.Second)),
		sent:  retry.WithMaxRetries(3, retry.NewConstant(time.Second)), // want `FB1001: a constant backoff`
	}
}

// take waits for another one to let go.
func (l *lock) take(ctx context.Context) error {
	return retry.Do(ctx, l.taken, func(ctx context.Context) error {
		var held bool
		if err := l.db.QueryRowContext(ctx, "SELECT take()").Scan(&held); err != nil {
			return err
		}
		if !held {
			return retry.RetryableError(errors.New("held by another"))
		}
		return nil
	})
}

// send retries what failed.
func (l *lock) send(ctx context.Context) error {
	return retry.Do(ctx, l.sent, func(ctx context.Context) error {
		if _, err := l.db.ExecContext(ctx, "SELECT send()"); err != nil {
			return retry.RetryableError(err)
		}
		return nil
	})
}
