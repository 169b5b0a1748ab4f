package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// OutboxBatch is what goes into the outbox at once, as rows: for drivers with a bulk
// insert of their own. Applications use [Outbox], or the module pgxoutbox.
type OutboxBatch struct {
	msgs []Message
	rows []outboxRow
}

// outboxRow is a message to one endpoint, or to its application.
type outboxRow struct {
	m        *Message
	endpoint string
}

// outboxColumns are the columns that a row fills, the body at the end.
var outboxColumns = []string{
	"message_id", "endpoint", "type", "source", "subject", "order_key", "idempotency_key", "correlation_id", "content_type", "headers", "application", "not_before", "body",
}

// maxOutboxFaults bounds how many messages an error names.
const maxOutboxFaults = 20

// NewOutboxBatch completes copies of messages: with an id and the trace context of ctx,
// where they have none. It refuses all of them when one could never be delivered
// ([ErrInvalid]), or when two of them have one id at one endpoint or application and are
// not the same message ([ErrConflict]). Bodies have at most maxPayload bytes, 0 for
// [DefaultMaxPayload]. The error names each message by its place, from 0, and its id.
func NewOutboxBatch(ctx context.Context, msgs []Message, maxPayload int) (*OutboxBatch, error) {
	b := &OutboxBatch{msgs: slices.Clone(msgs), rows: make([]outboxRow, 0, len(msgs))}
	type identity struct{ id, endpoint, application string }
	known := map[identity]*Message{}
	var errs []error
	for i := range b.msgs {
		m := &b.msgs[i]
		m.Trace(ctx)
		err := errors.Join(m.check(maxPayload), checkEndpointIDs(m.Endpoints))
		made := m.ID == ""
		if made {
			m.ID = NewID("msg")
		}
		for _, e := range m.destinations() {
			b.rows = append(b.rows, outboxRow{m, e})
			if made {
				continue
			}
			key := identity{m.ID, e, m.Application}
			if other := known[key]; other != nil && !m.SameContent(other) {
				err = errors.Join(err, fmt.Errorf("endpoint %q: %w", e, ErrConflict))
			}
			known[key] = m
		}
		if err == nil {
			continue
		}
		if len(errs) == maxOutboxFaults {
			errs = append(errs, errors.New("outbox: more messages have faults"))
			break
		}
		errs = append(errs, fmt.Errorf("outbox: message %d %.128q: %w", i, m.ID, err))
	}
	return b, errors.Join(errs...)
}

// destinations are the endpoints of the message's rows: one without, where it goes to an
// application.
func (m *Message) destinations() []string {
	if m.Application != "" {
		return []string{""}
	}
	return m.Endpoints
}

// checkEndpointIDs refuses what no endpoint can be called.
func checkEndpointIDs(list []string) error {
	f := faults{of: "message"}
	for _, e := range list {
		f.when(!name(e), "endpoint %.64q is not a valid id", e)
	}
	return f.join()
}

// IDs returns the ids of the messages, in their order.
func (b *OutboxBatch) IDs() []string {
	ids := make([]string, len(b.msgs))
	for i := range b.msgs {
		ids[i] = b.msgs[i].ID
	}
	return ids
}

// Len returns the number of rows: one for each endpoint of each message, or one for its
// application.
func (b *OutboxBatch) Len() int { return len(b.rows) }

// Columns returns the names of the columns, as [OutboxBatch.Row] fills them.
func (b *OutboxBatch) Columns() []string { return slices.Clone(outboxColumns) }

// Row returns a row: texts, an int64 and the body, or nil for NULL.
func (b *OutboxBatch) Row(i int) []any {
	body := b.rows[i].m.Body
	if body == nil {
		body = []byte{}
	}
	return append(b.rows[i].values(), body)
}

// values are what the row fills the columns with, but for the body.
func (r outboxRow) values() []any {
	m, row := r.m, make([]any, 0, len(outboxColumns))
	for _, s := range []string{m.ID, r.endpoint, m.Type, m.Source, m.Subject, m.Key, m.IdempotencyKey, m.CorrelationID, m.ContentType, r.headers(), m.Application} {
		if s == "" {
			row = append(row, nil)
		} else {
			row = append(row, s)
		}
	}
	if m.NotBefore.IsZero() {
		return append(row, nil)
	}
	return append(row, m.NotBefore.UnixMicro())
}

// Endpoints returns the endpoints of all rows, each once, sorted.
func (b *OutboxBatch) Endpoints() []string {
	return b.each(func(r outboxRow) string { return r.endpoint })
}

// Applications returns the applications of all rows, each once, sorted.
func (b *OutboxBatch) Applications() []string {
	return b.each(func(r outboxRow) string { return r.m.Application })
}

func (b *OutboxBatch) each(of func(outboxRow) string) (list []string) {
	for _, r := range b.rows {
		if s := of(r); s != "" {
			list = append(list, s)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Known refuses the batch with [ErrUnknownEndpoint] or [ErrUnknownApplication] when an
// endpoint or an application is not among those that exist. The error names up to 20 of
// each.
func (b *OutboxBatch) Known(endpoints, applications []string) error {
	var errs []error
	missing := func(names, existing []string, unknown error) {
		names = slices.DeleteFunc(names, func(s string) bool { return slices.Contains(existing, s) })
		for _, s := range names[:min(len(names), maxOutboxFaults)] {
			errs = append(errs, fmt.Errorf("outbox: %w %q", unknown, s))
		}
	}
	missing(b.Endpoints(), endpoints, ErrUnknownEndpoint)
	missing(b.Applications(), applications, ErrUnknownApplication)
	return errors.Join(errs...)
}

// headers returns the headers as the table has them.
func (r outboxRow) headers() string {
	if len(r.m.Headers) == 0 {
		return ""
	}
	text, _ := json.Marshal(r.m.Headers) // texts alone: it cannot fail
	return string(text)
}
