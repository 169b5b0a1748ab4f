package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/webhook"
)

// maxContents bounds how many contents are shown of an id that stands for several.
const maxContents = 16

// contents writes what was sent of the message: each content once.
func (r *run) contents(ctx context.Context) error {
	contents, err := r.store.Contents(ctx, r.filter.ID, r.filter.Endpoints, maxContents)
	for _, c := range contents {
		if !r.reveal {
			c = c.Mask()
		}
		if r.format == "json" {
			if err := json.NewEncoder(r.std.Out).Encode(c); err != nil {
				return err
			}
			continue
		}
		r.content(&c)
	}
	return err
}

// content writes one content as text.
func (r *run) content(c *webhook.MessageContent) {
	fmt.Fprintf(r.std.Out, "%s to %s\n", cli.Printable(r.filter.ID), cli.Printable(strings.Join(c.Endpoints, ", ")))
	if c.Erased {
		fmt.Fprintln(r.std.Out, "  erased")
		return
	}
	if c.Unreadable != "" {
		fmt.Fprintf(r.std.Out, "  %s\n", cli.Printable(c.Unreadable))
		return
	}
	for _, f := range []struct{ name, value string }{
		{"webhook-id", c.WebhookID},
		{"type", c.Type},
		{"source", c.Source},
		{"subject", c.Subject},
		{"key", c.Key},
		{"idempotency key", c.IdempotencyKey},
		{"correlation id", c.CorrelationID},
		{"content type", c.ContentType},
	} {
		if f.value != "" {
			fmt.Fprintf(r.std.Out, "  %s: %s\n", f.name, cli.Printable(f.value))
		}
	}
	for _, h := range c.Headers {
		fmt.Fprintf(r.std.Out, "  header %s: %s\n", cli.Printable(h.Name), cli.Printable(h.Value))
	}
	switch {
	case c.Dropped:
		fmt.Fprintln(r.std.Out, "  its payload is no longer kept")
	case c.Payload != nil && r.reveal:
		fmt.Fprintf(r.std.Out, "  payload of %d bytes: %s\n", len(c.Payload), cli.Printable(string(c.Payload)))
	}
}

// erase removes what is kept of a message, or of those that are chosen, when that is
// meant.
func (r *run) erase(ctx context.Context) (int, error) {
	what := r.filter.ID + " at all of its endpoints"
	switch {
	case r.filter.ID == "":
		what = "all messages that are chosen, which --dry-run counts"
	case len(r.filter.Endpoints) > 0:
		what = r.filter.ID + " at " + strings.Join(r.filter.Endpoints, ", ")
	}
	if !r.yes && !r.dryRun && !cli.Confirm(r.std, "Erase what is kept of "+what+"?") {
		fmt.Fprintln(r.std.Err, "messages: nothing was erased")
		return cli.ExitFound, nil
	}
	others := r.filter
	others.ID, others.Endpoints = "", nil
	if r.filter.ID == "" || !others.IsZero() || r.dryRun {
		return r.act(ctx, "erase")
	}
	switch n, err := r.store.Erase(ctx, r.filter.ID, r.filter.Endpoints, r.who); {
	case errors.Is(err, webhook.ErrSending):
		fmt.Fprintln(r.std.Err, "messages:", err)
		return cli.ExitFound, nil
	case err != nil:
		return 0, err
	case n == 0:
		return r.nothing()
	}
	fmt.Fprintf(r.std.Out, "%s is erased\n", cli.Printable(r.filter.ID))
	return cli.ExitOK, nil
}
