package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/verb"
	"github.com/forbear-go/forbear/webhook/store"
)

// errNone is the result when no message is chosen.
var errNone = verb.Negative("no such messages")

// pageSize is how many messages are read, or changed, at once.
const pageSize = store.MaxAct

// pages calls f for each page of the messages that are chosen, until f has enough.
func (m *messages) pages(ctx context.Context, size int, f func(page store.MessagePage) (more bool, err error)) error {
	for before := m.after; ; {
		page, err := m.db.Webhooks().Messages(ctx, m.filter, before, size)
		if err != nil {
			return err
		}
		more, err := f(page)
		if err != nil || !more || page.Next == 0 {
			return err
		}
		before = page.Next
	}
}

// list writes one line for each message.
func (m *messages) list(ctx context.Context) error {
	t := m.Table("ID ENDPOINT STATE TYPE KEY ATTEMPTS ERROR ACCEPTED")
	next, unreadable := int64(0), 0
	err := m.pages(ctx, min(m.limit, pageSize), func(page store.MessagePage) (bool, error) {
		unreadable += page.Unreadable
		for _, i := range page.Messages[:min(m.limit-t.Rows, len(page.Messages))] {
			t.Add(i, i.ID, i.Endpoint, i.State, i.Type, i.Key, i.Attempts, cmp.Or(i.ErrorType, i.Error), i.Created)
			next = i.Number
		}
		t.Flush()
		return t.Rows < m.limit, nil
	})
	if unreadable > 0 {
		fmt.Fprintf(m.Err, "forbear: messages: %s\n", passedOver(unreadable))
	}
	switch {
	case err != nil:
		return err
	case t.Rows == 0:
		return errNone
	case t.Rows == m.limit && m.Format == "text":
		m.More(next)
	}
	return nil
}

// passedOver says how many messages a filter could not be compared with.
func passedOver(n int) string {
	return fmt.Sprintf("%d skipped: their type and key are encrypted under another key: give it with --encryption-key-file", n)
}

// show writes a message at each of its endpoints, with its attempts.
func (m *messages) show(ctx context.Context) error {
	list, err := m.db.Webhooks().Deliveries(ctx, m.ID)
	if err != nil {
		return err
	}
	if ends := m.filter.Endpoints; len(ends) > 0 {
		list = slices.DeleteFunc(list, func(d store.DeliveryInfo) bool { return !slices.Contains(ends, d.Endpoint) })
	}
	if len(list) == 0 {
		return errNone
	}
	if m.reveal {
		if err := m.db.Reveal(ctx, m.Run, "message "+m.ID, ""); err != nil {
			return err
		}
	}
	if err := m.showContents(ctx); err != nil {
		return err
	}
	for _, d := range list {
		for i := range d.History {
			if !m.reveal {
				d.History[i].Response = ""
			}
		}
		if m.JSON(d) {
			continue
		}
		due := ""
		if !d.Due.IsZero() {
			due = ", due " + d.Due.Format(time.RFC3339)
		}
		fmt.Fprintf(m.Out, "%s at %s: %s%s\n", cli.Printable(d.Message), cli.Printable(d.Endpoint), d.State, due)
		for _, a := range d.History {
			fmt.Fprintf(m.Out, "  attempt %d  %s  took %s  %d %s\n", a.Number, a.At.Format(time.RFC3339), a.Took.Round(time.Millisecond), a.Status, cli.Printable(cmp.Or(a.ErrorType, "delivered")))
			if a.Response != "" {
				fmt.Fprintf(m.Out, "    %s\n", cli.Printable(a.Response))
			}
		}
	}
	return nil
}

// maxContents bounds how many contents are shown of an id that stands for several.
const maxContents = 16

// showContents writes what was sent of the message: each content once.
func (m *messages) showContents(ctx context.Context) error {
	contents, err := m.db.Webhooks().Contents(ctx, m.ID, m.filter.Endpoints, maxContents)
	for _, c := range contents {
		if !m.reveal {
			c = c.Mask()
		}
		if !m.JSON(c) {
			m.printContent(&c)
		}
	}
	return err
}

// printContent writes one content as text.
func (m *messages) printContent(c *store.MessageContent) {
	fmt.Fprintf(m.Out, "%s to %s\n", cli.Printable(m.ID), cli.Printable(strings.Join(c.Endpoints, ", ")))
	line := func(format, value string) {
		if value != "" {
			fmt.Fprintf(m.Out, "  "+format+"\n", cli.Printable(value))
		}
	}
	if c.Erased {
		line("%s", "erased")
		return
	}
	if c.Unreadable != "" {
		line("%s", c.Unreadable)
		return
	}
	line("webhook-id: %s", c.WebhookID)
	line("type: %s", c.Type)
	line("source: %s", c.Source)
	line("subject: %s", c.Subject)
	line("key: %s", c.Key)
	line("idempotency key: %s", c.IdempotencyKey)
	line("correlation id: %s", c.CorrelationID)
	line("content type: %s", c.ContentType)
	for _, h := range c.Headers {
		line("header %s", h.Name+": "+h.Value)
	}
	switch {
	case c.Dropped:
		line("%s", "its payload is no longer kept")
	case c.Payload != nil && m.reveal:
		line("payload of %s", fmt.Sprintf("%d bytes: %s", len(c.Payload), c.Payload))
	}
}
