package sqlstore

import (
	"context"

	"github.com/forbear-go/forbear/idempotency"
)

// claimOne and completeOne go through the group commit, which is a batch already:
// a statement crosses no network.

func (sqlite) claimOne(ctx context.Context, db *DB, c idempotency.Claim) (idempotency.Verdict, error) {
	return single(ctx, db, func(t *tx) (idempotency.Verdict, error) { return t.claimRecord(c) })
}

func (sqlite) completeOne(ctx context.Context, db *DB, c completion) error {
	_, err := single(ctx, db, func(t *tx) (struct{}, error) { return t.completeRecord(c) })
	return err
}
