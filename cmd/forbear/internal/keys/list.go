package keys

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/idempotency"
)

// listed is one record in JSON. Of a response it has the status and the names of
// its headers: the rest belongs to the caller, and an operator needs none of it to
// decide.
//
// The field names are a format that scripts read.
type listed struct {
	Scope     string            `json:"scope"`
	Key       string            `json:"key"`
	State     idempotency.State `json:"state"`
	Operation string            `json:"operation"`
	Attempt   int               `json:"attempt"`
	Fence     int64             `json:"fence"`
	Created   time.Time         `json:"created"`
	LeaseEnd  time.Time         `json:"lease_end,omitzero"`
	Completed time.Time         `json:"completed,omitzero"`
	Expires   time.Time         `json:"expires"`
	Status    int               `json:"status,omitempty"`
	Headers   []string          `json:"headers,omitempty"`
	Note      string            `json:"note,omitempty"`
}

func listedOf(r idempotency.Record) listed {
	l := listed{
		Scope: r.ID.Scope, Key: r.ID.Key, State: r.State, Operation: r.Operation, Attempt: r.Attempt, Fence: r.Fence,
		Created: r.Created, LeaseEnd: r.LeaseEnd, Completed: r.Completed, Expires: r.Expires, Note: r.Note,
	}
	// Only completed records have a response.
	if r.Response != nil {
		l.Status, l.Headers = r.Response.Status, slices.Sorted(maps.Keys(r.Response.Header))
	}
	return l
}

// find returns the records that the filter chooses. None is exit code 1, as with
// grep.
func (k *keyring) find(ctx context.Context, db *keyStore) (records []idempotency.Record, code int) {
	records, err := db.records.List(ctx, k.filter)
	switch {
	case err != nil:
		return nil, k.std.Fail("keys: %v", err)
	case len(records) == 0:
		return nil, cli.ExitFound
	}
	return records, cli.ExitOK
}

// writeJSON writes one record a line, so that a long list can be read while it
// is written.
func (k *keyring) writeJSON(records []idempotency.Record) int {
	enc := json.NewEncoder(k.std.Out)
	for _, r := range records {
		if err := enc.Encode(listedOf(r)); err != nil {
			return k.std.Fail("keys: %v", err)
		}
	}
	return cli.ExitOK
}

// list writes the records that the filter chooses. Scope, operation and note
// come from callers and are quoted: they cannot steer the terminal.
func (k *keyring) list(ctx context.Context, db *keyStore) int {
	records, code := k.find(ctx, db)
	if len(records) == k.filter.Limit { // which may be all
		defer fmt.Fprintln(k.std.Err, "forbear: keys: there may be more: choose by --scope and --state, or raise --limit, up to 1000")
	}
	switch {
	case code == cli.ExitUsage:
		return code
	case k.format == "json" && code == cli.ExitOK:
		return k.writeJSON(records)
	case k.format == "json":
		return code
	}
	// The key is a digest in base64url and needs no quotes.
	w := tabwriter.NewWriter(k.std.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCOPE\tKEY\tSTATE\tSINCE\tOPERATION\tNOTE")
	for _, r := range records {
		fmt.Fprintf(w, "%q\t%s\t%s\t%s\t%q\t%q\n", r.ID.Scope, r.ID.Key, r.State, r.Created.Format(time.RFC3339), r.Operation, r.Note)
	}
	// A closed pipe is the reader's choice, as with head.
	_ = w.Flush()
	return code
}

// show writes all that an operator may see of the records of one key.
func (k *keyring) show(ctx context.Context, db *keyStore) int {
	records, code := k.find(ctx, db)
	if code != cli.ExitOK {
		if code == cli.ExitFound {
			fmt.Fprintln(k.std.Err, "forbear: keys: no such idempotency record")
		}
		return code
	}
	if k.format == "json" {
		return k.writeJSON(records)
	}
	for i, r := range records {
		if i > 0 {
			fmt.Fprintln(k.std.Out)
		}
		l := listedOf(r)
		w := tabwriter.NewWriter(k.std.Out, 0, 0, 2, ' ', 0)
		for _, line := range []struct {
			name  string
			value any
		}{
			{"scope", fmt.Sprintf("%q", l.Scope)},
			{"key", l.Key},
			{"state", l.State},
			{"operation", fmt.Sprintf("%q", l.Operation)},
			{"attempt", l.Attempt},
			{"fence", l.Fence},
			{"created", l.Created},
			{"lease end", l.LeaseEnd},
			{"completed", l.Completed},
			{"expires", l.Expires},
			{"status", l.Status},
			{"headers", strings.Join(l.Headers, ", ")},
			{"note", fmt.Sprintf("%q", l.Note)},
		} {
			if at, ok := line.value.(time.Time); ok {
				if at.IsZero() {
					continue
				}
				line.value = at.Format(time.RFC3339)
			}
			if line.value == 0 || line.value == "" || line.value == `""` {
				continue
			}
			fmt.Fprintf(w, "%s:\t%v\n", line.name, line.value)
		}
		_ = w.Flush() // as list does
	}
	return cli.ExitOK
}
