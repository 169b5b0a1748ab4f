package maintain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/sqlstore"
)

// tellEvery is how often a rewrite says how far it is.
const tellEvery = 2 * time.Second

// reencrypt writes anew what is under other keys than the first, and counts what is
// under which in the end.
func (m *maintenance) reencrypt(ctx context.Context, operands []string) (int, error) {
	if err := none("reencrypt", operands); err != nil {
		return 0, err
	}
	if err := m.open(ctx); err != nil {
		return 0, err
	}
	defer func() { _ = m.db.Close() }()
	if !m.check {
		told := time.Now()
		n, err := m.db.Reencrypt(ctx, func(part string, rows, written int64) {
			if time.Since(told) > tellEvery {
				told = time.Now()
				fmt.Fprintf(m.std.Err, "%s: %d rows passed, %d rewritten so far\n", part, rows, written)
			}
		})
		if err != nil {
			return 0, hint(err)
		}
		fmt.Fprintf(m.std.Out, "%d rows rewritten\n", n)
	}
	list, err := m.db.SealedUnder(ctx)
	if err != nil {
		return 0, hint(err)
	}
	code := cli.ExitOK
	for _, s := range list {
		key := "key " + s.Key
		switch {
		case s.Key == "":
			key = "not encrypted"
		case s.Unbound:
			key += ", not bound to its row"
		}
		if !s.Current {
			code = cli.ExitFound
		}
		fmt.Fprintf(m.std.Out, "%-20s %-14s %d\n", s.Part, key, s.Rows)
	}
	if code != cli.ExitOK {
		what := "a process still writes otherwise, give it the new key and this version first and run this again"
		if m.check {
			what = "run reencrypt without --check"
		}
		m.std.Fail("database: not everything is encrypted under the first key, for its row: %s", what)
	} else if m.db.AllSealed() {
		fmt.Fprintln(m.std.Err, "everything is encrypted for its row: what is not is refused from now on")
	}
	return code, nil
}

// hint says what to do about a key that is missing.
func hint(err error) error {
	switch {
	case errors.Is(err, sqlstore.ErrKey):
		return fmt.Errorf("%w: give that key too, behind the first, with another --encryption-key-file", err)
	case errors.Is(err, sqlstore.ErrNoKey):
		return fmt.Errorf("%w: name its file with --encryption-key-file", err)
	}
	return err
}
