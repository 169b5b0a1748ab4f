package sqlstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// What an application inserted is read without trust: any column may have any type
// on SQLite, any length, and bytes that are no text. Reading it never fails for
// such a reason; what is wrong is noted at the row.

// outboxRow is one row that an application inserted: whatever it likes, for the
// database checks little, and SQLite nothing.
type outboxRow struct {
	id      int64
	msg     webhook.Message
	headers string // as they were, when they cannot be read
	bad     error  // why the row cannot be accepted
	waits   bool   // it cannot be accepted for now, and stays
	large   bool   // too large to be moved: msg has what identifies it, and no more
	cut     bool   // large, and only a part of it is kept
	aside   bool   // its application is suspended
	call    *acceptance
}

const outboxColumns = `id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, application, headers, not_before, body, created`

// outboxSize is what a row takes, without reading it.
var outboxSize = func() string {
	var sum []string
	for column := range strings.SplitSeq(outboxColumns, ", ") {
		if column != "id" && column != "not_before" && column != "created" {
			sum = append(sum, "COALESCE(octet_length("+column+"), 0)")
		}
	}
	return strings.Join(sum, " + ")
}()

// maxColumn bounds what identifies and describes a message: far more than is
// valid, so that a letter can have it as it is.
const maxColumn = 4 << 10

// outboxRows reads the first rows behind one, as many as fit. Those that another
// transaction holds, an application's own perhaps, are passed over.
func (t *tx) outboxRows(behind int64, limit int) ([]*outboxRow, error) {
	var list []*outboxRow
	known := map[int64]*outboxRow{}
	var fit []int64
	// What is large is not read, and so takes no room.
	total := int64(0)
	err := t.each(func(r *sql.Rows) error {
		o := &outboxRow{}
		var size int64
		if err := r.Scan(&o.id, &size); err != nil {
			return err
		}
		o.large = size > maxOutboxRow
		if !o.large {
			total += size
		}
		// The first rows always fit: one of them is smaller than the batch.
		if total > maxOutboxBatch {
			return nil
		}
		if list, known[o.id] = append(list, o), o; !o.large {
			fit = append(fit, o.id)
		} else {
			o.bad = fmt.Errorf("row of %d bytes, want at most %d: it is kept in forbear_outbox_refused", size, maxOutboxRow)
			if o.cut = t.db.cipher != nil && size > maxOutboxBatch; o.cut {
				o.bad = fmt.Errorf("row of %d bytes, want at most %d (%d with encryption): its beginning is kept in forbear_outbox_refused", size, maxOutboxRow, maxOutboxBatch)
			}
		}
		return nil
	}, `SELECT id, `+outboxSize+` FROM forbear_outbox WHERE id > ? ORDER BY id LIMIT ? {skip locked}`, behind, limit)
	if err != nil {
		return nil, err
	}
	// Not within each: a connection has one conversation at a time.
	for _, o := range list {
		if o.large {
			if err := t.readLarge(o); err != nil {
				return nil, err
			}
		}
	}
	return list, t.readOutbox(fit, known)
}

// readOutbox reads whole rows.
func (t *tx) readOutbox(ids []int64, known map[int64]*outboxRow) error {
	if len(ids) == 0 {
		return nil
	}
	return t.each(func(r *sql.Rows) error {
		var v [15]any
		dest := make([]any, len(v))
		// Any type: SQLite keeps what was inserted, whatever the column says.
		for i := range v {
			dest[i] = &v[i]
		}
		if err := r.Scan(dest...); err != nil {
			return err
		}
		id, ok := v[0].(int64)
		if !ok || known[id] == nil {
			return fmt.Errorf("outbox row %v was not asked for", v[0])
		}
		known[id].fill(v[1:])
		return nil
	}, `SELECT `+outboxColumns+` FROM forbear_outbox WHERE id IN ({ids})`, asJSON{ids})
}

// readLarge reads the beginning of what identifies a row.
func (t *tx) readLarge(o *outboxRow) error {
	var id, endpoint, tenant any
	if _, err := t.row([]any{&id, &endpoint, &tenant}, `SELECT substr(message_id, 1, 128), substr(endpoint, 1, 128), substr(application, 1, 128) FROM forbear_outbox WHERE id = ?`, o.id); err != nil {
		return err
	}
	o.msg.ID = text(id)
	o.address(text(endpoint), text(tenant))
	return nil
}

// text returns a value of any type as text.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}

// fill takes the columns over, from message_id on.
func (o *outboxRow) fill(v []any) {
	m := &o.msg
	var endpoint, tenant string
	var errs []error
	for i, s := range []*string{&m.ID, &endpoint, &m.Type, &m.Source, &m.Subject, &m.Key, &m.IdempotencyKey, &m.CorrelationID, &m.ContentType, &tenant} {
		if *s = text(v[i]); len(*s) > maxColumn {
			*s, o.large = (*s)[:128], true
			errs = append(errs, fmt.Errorf("column of more than %d bytes: the row is kept in forbear_outbox_refused", maxColumn))
		}
	}
	o.address(endpoint, tenant)
	o.headers, m.Body = text(v[10]), []byte(text(v[12]))
	if m.ID == "" {
		errs = append(errs, errors.New("message_id is empty"))
	}
	var err error
	if m.NotBefore, err = notBefore(v[11]); err != nil {
		errs = append(errs, err)
	}
	if m.Headers, err = outboxHeaders(o.headers); err != nil {
		errs = append(errs, err)
	} else {
		o.headers = ""
	}
	o.bad = errors.Join(errs...)
}

// address says where the message goes. One that names both, or neither, is refused
// like any other message.
func (o *outboxRow) address(endpoint, tenant string) {
	o.msg.Application = tenant
	if endpoint != "" || tenant == "" {
		o.msg.Endpoints = []string{endpoint}
	}
}

func outboxHeaders(text string) (list []webhook.Header, err error) {
	if text == "" {
		return nil, nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&list); err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("text follows the array")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("headers are not a JSON array of {\"name\",\"value\"}: %w", err)
	}
	return list, nil
}

// The range of not_before, in microseconds: what is outside was meant in
// another unit, and would be sent at once or never.
const (
	firstMicros = 1_000_000_000_000_000   // in 2001; milliseconds reach it in the year 33658
	lastMicros  = 253_402_300_799_999_999 // the end of 9999
)

func notBefore(v any) (time.Time, error) {
	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		v = int64(f)
	}
	us, ok := v.(int64)
	switch {
	case v == nil, ok && us == 0:
		return time.Time{}, nil
	case !ok, us < firstMicros, us > lastMicros:
		return time.Time{}, fmt.Errorf("not_before %.40q is not a number of microseconds since 1970, from %d to %d", text(v), firstMicros, lastMicros)
	}
	return at(us), nil
}

// letter makes the letter of a row that cannot be accepted, with all that the
// row has.
func (o *outboxRow) letter() deadletter.Letter {
	m := &o.msg
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	l := deadletter.Letter{
		ID: webhook.NewID("dlq"), Queue: webhook.Queue, Destination: valid(store.DestinationOf(m)), Application: valid(m.Application), EventID: valid(m.ID),
		Source: valid(m.Source), Type: valid(m.Type), Subject: valid(m.Subject), PartitionKey: valid(m.Key),
		IdempotencyKey: valid(m.IdempotencyKey), CorrelationID: valid(m.CorrelationID), ContentType: valid(m.ContentType),
		Payload: m.Body, Reason: deadletter.ReasonInvalid, Description: fmt.Sprintf("%.*s", deadletter.MaxDescription/4, valid(o.bad.Error())),
	}
	if errors.Is(o.bad, webhook.ErrConflict) {
		l.Reason = deadletter.ReasonConflict
	}
	for _, h := range m.Headers {
		l.Headers = append(l.Headers, webhook.Header{Name: valid(h.Name), Value: valid(h.Value)})
	}
	// Headers under this name keep the letter from being redriven as it is.
	switch {
	case o.large:
		l.Payload, l.Headers = nil, []webhook.Header{{Name: deadletter.UnreadableHeaders, Value: seeRefused}}
	case o.headers != "":
		l.Headers = []webhook.Header{{Name: deadletter.UnreadableHeaders, Value: valid(o.headers)}}
	}
	return l
}
