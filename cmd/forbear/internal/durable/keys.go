package durable

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/webhook"
)

// IsDigest reports whether a text may be the digest of a key. A key in its place would be
// looked for in vain, and then stand in the audit trail.
func IsDigest(text string) bool {
	b, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(b) == sha256.Size
}

// MaxKey bounds a customer's key, in bytes. An event's id may be longer than a request's
// key.
const MaxKey = 4 << 10

// FindKey returns the filter that finds the records of a key as the customer has it, in
// all scopes or in one. With a source the key is the id of an event. The key goes no further
// than its digest: it may be worth as much as the request.
func FindKey(key, scope, source string) (f idempotency.Filter, err error) {
	if len(key) > MaxKey {
		return f, errors.New("the key is longer than 4 KiB")
	}
	if scope != "" {
		f.Scope = idempotency.ScopeOf(scope)
	}
	if source != "" {
		f.Key = idempotency.Digest(source, key)
		return f, nil
	}
	if key, err = idempotency.ParseKey(key); err == nil {
		f.Key = idempotency.Digest(key)
	}
	return f, err
}

// CheckSettled refuses a response that duplicates could not get: what is not final, such as
// 503, they would receive permanently, and take for a reason to retry.
func CheckSettled(a *idempotency.Response) error {
	if len(a.Body) > 0 && a.Header.Get("Content-Type") == "" {
		return errors.New("a body needs the header Content-Type")
	}
	return a.Check()
}

// Records are where a record is settled. Audit writes to the trail.
type Records struct {
	Store interface {
		Resolve(ctx context.Context, id idempotency.ID, r idempotency.Resolution) error
	}
	Audit func(ctx context.Context, e queue.Entry) error
}

// ErrEventResponse refuses a response for an event, which has none.
var ErrEventResponse = errors.New("an event has no response: only a status can be given")

// Settle resolves a held record as done or as undone. The audit entry comes first: a record
// that was resolved without a trace must not exist, while an entry for a record that stayed
// held is noticed, because the call fails.
func (k Records) Settle(ctx context.Context, id idempotency.ID, r idempotency.Resolution) error {
	if a := r.Response; a != nil && strings.HasPrefix(id.Scope, idempotency.EventScope) && len(a.Header)+len(a.Body) > 0 {
		return ErrEventResponse
	}
	if err := k.Audit(ctx, queue.Entry{Who: r.By, Action: "settle", Target: id.Scope + " " + id.Key, Detail: settlement(r)}); err != nil {
		return err
	}
	return k.Store.Resolve(ctx, id, r)
}

// settlement is what the audit trail has of a resolution: of a body its size and digest, by
// which it can be compared, and not what is in it.
func settlement(r idempotency.Resolution) string {
	if r.Response == nil {
		return "undone: " + r.Why
	}
	text := fmt.Sprintf("done, %d", r.Response.Status)
	if names := slices.Sorted(maps.Keys(r.Response.Header)); len(names) > 0 {
		text += ", headers " + strings.Join(names, " ")
	}
	if n := len(r.Response.Body); n > 0 {
		text += fmt.Sprintf(", body of %d bytes, sha256 %x", n, sha256.Sum256(r.Response.Body))
	}
	return text + ": " + r.Why
}

// keyStates are those of records.
var keyStates = []string{string(idempotency.Held), string(idempotency.Started), string(idempotency.Completed), string(idempotency.Released)}

// listKeys lists idempotency records in the order of their scopes and digests.
func (s *Service) listKeys(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	f := idempotency.Filter{State: idempotency.State(q.Get("state")), Scope: idempotency.ScopeOf(q.Get("scope")), Key: q.Get("key")}
	if f.State != "" {
		if err := checkStates([]string{q.Get("state")}, keyStates); err != nil {
			return 0, nil, err
		}
	}
	if f.Key != "" && !IsDigest(f.Key) {
		return 0, nil, fmt.Errorf("%w: key: want the digest that a list shows: POST /v1/keys/find takes the key itself", errBadRequest)
	}
	if text := q.Get("after"); text != "" {
		b, err := base64.RawURLEncoding.DecodeString(text)
		scope, key, ok := strings.Cut(string(b), "\x00")
		if err != nil || !ok || storable("after", scope, key) != nil {
			return 0, nil, fmt.Errorf("%w: after: want next of an earlier page, got %.20q", errBadRequest, text)
		}
		f.After = idempotency.ID{Scope: scope, Key: key}
	}
	var err error
	if f.Limit, err = limitOf(q); err != nil {
		return 0, nil, err
	}
	return s.keys(r, f)
}

// keys responds with a page of records.
func (s *Service) keys(r *http.Request, f idempotency.Filter) (int, any, error) {
	records, err := s.DB.Idempotency().List(r.Context(), f)
	list := make([]idempotency.Evidence, len(records))
	for i := range records {
		list[i] = records[i].Evidence()
	}
	return http.StatusOK, page("keys", list, f.Limit, func(k idempotency.Evidence) string {
		return base64.RawURLEncoding.EncodeToString([]byte(k.Scope + "\x00" + k.Key))
	}), err
}

// findKey is the body of POST /v1/keys/find: no query has the key, which would end in logs.
type findKey struct {
	Key    string `json:"key"`
	Scope  string `json:"scope"`
	Source string `json:"source"`
}

// findKeys finds the records of a customer's key.
func (s *Service) findKeys(r *http.Request, body findKey) (int, any, error) {
	f, err := FindKey(body.Key, body.Scope, body.Source)
	if err == nil && body.Key == "" {
		err = errors.New("key is missing")
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	f.Limit = maxPage
	return s.keys(r, f)
}

// settleKey is the body of POST /v1/keys/settle.
type settleKey struct {
	Scope  string `json:"scope"`
	Key    string `json:"key"`
	Fence  int64  `json:"fence"`
	Why    string `json:"why"`
	Undone bool   `json:"undone"`
	Done   *struct {
		Status  int              `json:"status"`
		Headers []webhook.Header `json:"headers"`
		Body    []byte           `json:"body_base64"`
	} `json:"done"`
}

// resolution reads what the caller says of a record.
func (b *settleKey) resolution() (r idempotency.Resolution, err error) {
	r = idempotency.Resolution{Why: strings.TrimSpace(b.Why), Fence: b.Fence}
	switch {
	case b.Scope == "" || !IsDigest(b.Key):
		return r, errors.New("want the scope and the digest that a list shows")
	// Exactly one of the two, and no default: either can do harm when it is wrong.
	case (b.Done == nil) != b.Undone:
		return r, errors.New("want either done (the work was done) or undone (it was not)")
	case r.Why == "":
		return r, errors.New("why is missing: say how you know")
	case b.Undone:
		return r, nil
	}
	r.Response = &idempotency.Response{Status: b.Done.Status, Body: b.Done.Body}
	for _, h := range b.Done.Headers {
		if r.Response.Header == nil {
			r.Response.Header = http.Header{}
		}
		name := textproto.CanonicalMIMEHeaderKey(h.Name)
		r.Response.Header[name] = append(r.Response.Header[name], h.Value)
	}
	return r, CheckSettled(r.Response)
}

// settleKey settles a record whose outcome is unknown, and shows it.
func (s *Service) settleKey(r *http.Request, body settleKey) (int, any, error) {
	res, err := body.resolution()
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	res.By = actor(r)
	id := idempotency.ID{Scope: body.Scope, Key: body.Key}
	if err := (Records{s.DB.Idempotency(), s.DB.DeadLetters().Audit}).Settle(r.Context(), id, res); err != nil {
		return 0, nil, err
	}
	record, err := s.DB.Idempotency().Get(r.Context(), id)
	return http.StatusOK, record.Evidence(), err
}
