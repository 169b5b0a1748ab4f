package sqlstore

import (
	"context"
)

// apart takes those that accept a message which one before them accepts as
// well: in the same transaction they would come out of the order in which all
// writers add messages.
func apart(group []*op) (now, later []*op) {
	if len(group) == 1 {
		return group, nil
	}
	taken := map[identity]bool{}
	for _, o := range group {
		if o.accept == nil || o.accept.take(taken) {
			now = append(now, o)
		} else {
			later = append(later, o)
		}
	}
	return now, later
}

// take reports whether nothing that the call names was taken, and takes it.
func (a *acceptance) take(taken map[identity]bool) bool {
	for i := range a.rows {
		for _, e := range a.rows[i].Endpoints {
			if taken[identity{a.rows[i].ID, e}] {
				return false
			}
		}
	}
	for i := range a.rows {
		for _, e := range a.rows[i].Endpoints {
			taken[identity{a.rows[i].ID, e}] = true
		}
	}
	return true
}

// settings keeps PostgreSQL from reading whole tables. It cannot know that a
// claim finds a handful of rows, and joins what it believes to be thousands
// with a table of a million by reading all of it. Where there is no other way,
// its estimate is so high that it would compile the statement, which takes
// longer than any of ours. And it ends the transaction of a process that was
// frozen in the middle of one, whose locks would hold up all others.
func (w *writer) settings(ctx context.Context) error {
	_, err := w.conn.ExecContext(ctx, `SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
		SET idle_in_transaction_session_timeout = '10s'`)
	if err != nil {
		w.drop()
	}
	return err
}
