package keys

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
)

// list writes the records that the filter chooses. None is exit code 1, as with grep.
// Scope, operation and note come from callers and are quoted.
func (k *keys) list(ctx context.Context) error {
	records, err := k.db.records.List(ctx, k.filter)
	if err != nil {
		return err
	}
	t := k.Table("SCOPE KEY STATE SINCE OPERATION NOTE")
	if k.Format == "text" {
		t.Head()
	}
	for _, r := range records {
		t.Add(r.Evidence(), quoted(r.ID.Scope), r.ID.Key, r.State, r.Created, quoted(r.Operation), quoted(r.Note))
	}
	t.Flush()
	switch len(records) {
	case 0:
		return verb.ErrNegative
	case k.filter.Limit: // which may be all
		fmt.Fprintln(k.Err, "forbear: keys: there may be more: add --scope or --state, or raise --limit, up to 1000")
	}
	return nil
}

// quoted is a text from a caller, in quotes.
func quoted(s string) string { return fmt.Sprintf("%q", s) }

// show writes all that an operator may see of the records of one key.
func (k *keys) show(ctx context.Context) error {
	records, err := k.db.records.List(ctx, k.filter)
	switch {
	case err != nil:
		return err
	case len(records) == 0:
		return verb.Negative("no such idempotency record")
	}
	for i, r := range records {
		l := r.Evidence()
		if k.JSON(l) {
			continue
		}
		if i > 0 {
			fmt.Fprintln(k.Out)
		}
		w := tabwriter.NewWriter(k.Out, 0, 0, 2, ' ', 0)
		for _, line := range []struct {
			name  string
			value any
		}{
			{"scope", quoted(l.Scope)},
			{"key", l.Key},
			{"state", l.State},
			{"operation", quoted(l.Operation)},
			{"attempt", l.Attempt},
			{"fence", l.Fence},
			{"created", l.Created},
			{"lease end", l.LeaseEnd},
			{"completed", l.Completed},
			{"expires", l.Expires},
			{"status", l.Status},
			{"headers", strings.Join(l.Headers, ", ")},
			{"note", quoted(l.Note)},
		} {
			at, isTime := line.value.(time.Time)
			if line.value != `""` && !(isTime && at.IsZero()) && !reflect.ValueOf(line.value).IsZero() {
				fmt.Fprintf(w, "%s:\t%s\n", line.name, verb.Cell(line.value))
			}
		}
		_ = w.Flush() // a closed pipe is the reader's choice
	}
	return nil
}
