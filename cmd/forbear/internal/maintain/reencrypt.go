package maintain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/sqlstore"
)

// progressEvery is how often a rewrite says how far it is.
const progressEvery = 2 * time.Second

// reencrypt writes anew what is under other keys than the first, and counts what is
// under which in the end.
func (m *maintenance) reencrypt(ctx context.Context) error {
	if !m.check {
		said := time.Now()
		n, err := m.db.Reencrypt(ctx, func(part string, rows, written int64) {
			if time.Since(said) > progressEvery {
				said = time.Now()
				fmt.Fprintf(m.Err, "%s: %d rows read, %d rewritten so far\n", part, rows, written)
			}
		})
		if err != nil {
			return hint(err)
		}
		fmt.Fprintf(m.Out, "%d rows rewritten\n", n)
	}
	list, err := m.db.SealedUnder(ctx)
	if err != nil {
		return hint(err)
	}
	current := true
	for _, s := range list {
		key := "key " + s.Key
		switch {
		case s.Key == "":
			key = "not encrypted"
		case s.Unbound:
			key += ", not bound to its row"
		}
		current = current && s.Current
		fmt.Fprintf(m.Out, "%-20s %-14s %d\n", s.Part, key, s.Rows)
	}
	const not = "not every row is encrypted under the first key: "
	switch {
	case !current && m.check:
		return verb.Negative(not + "run reencrypt without --check")
	case !current:
		return verb.Negative(not + "another process still writes without it: give that process the new key and this version, then run reencrypt again")
	case m.db.AllSealed():
		fmt.Fprintln(m.Err, "every row is encrypted: other values are refused from now on")
	}
	return nil
}

// hint says what to do about a key that is missing.
func hint(err error) error {
	switch {
	case errors.Is(err, sqlstore.ErrKey):
		return fmt.Errorf("%w, after the first key", err)
	case errors.Is(err, sqlstore.ErrNoKey):
		return fmt.Errorf("%w: name its file with --encryption-key-file", err)
	}
	return err
}
