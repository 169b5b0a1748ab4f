package redisstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// Limits of a record's note, and of a Location that outlives its response, in bytes.
const (
	maxNote     = 512
	maxLocation = 512
)

// clip bounds a text for people, and keeps a cut from leaving half a
// character.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxNote)], "") }

// name returns where a record is: the prefix, the length of the scope, the
// scope and the key. The length keeps a scope with a colon from passing for
// another.
func (i *Idempotency) name(id idempotency.ID) string {
	return i.opts.Prefix + strconv.Itoa(len(id.Scope)) + ":" + id.Scope + ":" + id.Key
}

// parse is the inverse of name. Names of other programs under the same
// prefix are refused.
func (i *Idempotency) parse(name string) (id idempotency.ID, ok bool) {
	rest, ok := strings.CutPrefix(name, i.opts.Prefix)
	if !ok {
		return id, false
	}
	length, rest, ok := strings.Cut(rest, ":")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || n >= len(rest) || rest[n] != ':' {
		return id, false
	}
	return idempotency.ID{Scope: rest[:n], Key: rest[n+1:]}, true
}

// fields are those of a record, in the order in which the claim's script
// returns them. The body comes last, so that lists can leave it out.
var fields = []string{
	"state", "fingerprint", "operation", "note", "rerun", "owner", "fence", "attempt",
	"created", "lease", "completed", "expires", "status", "header", "tombstone", "sealed", "body",
}

// row reads the fields of a record one by one. The first fault stays, so
// that its user checks once, at the end.
type row struct {
	values []any
	err    error
}

// text reads the next field; one that is not set is "".
func (r *row) text() string {
	if len(r.values) == 0 {
		r.err = errors.New("record is truncated")
		return ""
	}
	v := r.values[0]
	r.values = r.values[1:]
	s, ok := v.(string)
	if !ok && v != nil {
		r.err = fmt.Errorf("record has a field of type %T", v)
	}
	return s
}

// number reads the next field as a number; one that is not set is 0.
func (r *row) number() int64 {
	s := r.text()
	if s == "" || r.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		r.err = errors.New("record has a field that is not a number")
	}
	return n
}

// time reads the next field as microseconds since 1970.
func (r *row) time() time.Time { return at(r.number()) }

// at is the inverse of micros for points in time; 0 is the zero time.
func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// decode reads a record. Only a completed one has a response. Values that
// cannot be read are errors that do not quote them: they may be a caller's
// data.
func (i *Idempotency) decode(id idempotency.ID, values []any) (rec idempotency.Record, err error) {
	if len(values) == 0 || values[0] == nil {
		return rec, idempotency.ErrNotFound
	}
	r := row{values: values}
	rec = idempotency.Record{
		ID: id, State: idempotency.State(r.text()), Fingerprint: r.text(), Operation: r.text(), Note: r.text(), Rerun: r.text() == "1",
		Owner: r.text(), Fence: r.number(), Attempt: int(r.number()), Created: r.time(), LeaseEnd: r.time(), Completed: r.time(), Expires: r.time(),
	}
	status, header, tombstone, sealed, body := int(r.number()), r.text(), r.text(), r.text() == "1", r.text()
	if r.err != nil || rec.State != idempotency.Completed {
		return rec, r.err
	}
	rec.Response = &idempotency.Response{Status: status, Tombstone: tombstone}
	head, err := i.open(id, "header", header, sealed)
	if err != nil {
		return rec, err
	}
	if len(head) > 0 {
		if err := json.Unmarshal(head, &rec.Response.Header); err != nil {
			return rec, errors.New("record has headers that cannot be read")
		}
	}
	if body != "" {
		rec.Response.Body, err = i.open(id, "body", body, sealed)
	}
	return rec, err
}

// binder is a cipher that binds what it seals to a place, and reports of what it opens
// whether that was bound.
type binder interface {
	SealAt(place string, plain []byte) ([]byte, error)
	OpenAt(place string, sealed []byte) (plain []byte, bound bool, err error)
}

// place is where a field belongs. It is none of a database's.
func (i *Idempotency) place(id idempotency.ID, field string) string {
	return "redis." + field + "\x00" + i.name(id)
}

// seal encrypts a field.
func (i *Idempotency) seal(id idempotency.ID, field string, plain []byte) ([]byte, error) {
	if b, ok := i.opts.Cipher.(binder); ok {
		return b.SealAt(i.place(id, field), plain)
	}
	return i.opts.Cipher.Seal(plain)
}

// open decrypts a field, if it is sealed. A record that was sealed needs the cipher it was
// sealed with.
func (i *Idempotency) open(id idempotency.ID, field, value string, sealed bool) ([]byte, error) {
	b, binds := i.opts.Cipher.(binder)
	switch {
	case !sealed && i.opts.Bound && value != "":
		return nil, errors.New("record is not encrypted, and all records must be")
	case !sealed:
		return []byte(value), nil
	case i.opts.Cipher == nil:
		return nil, errors.New("record is encrypted: give its key with --encryption-key-file, or a cipher")
	case !binds:
		return i.opts.Cipher.Open([]byte(value))
	}
	plain, bound, err := b.OpenAt(i.place(id, field), []byte(value))
	switch {
	case i.opts.Bound && err == nil && !bound:
		return nil, errors.New("record is not encrypted for its name, and all records must be")
	case i.opts.Bound || err == nil:
		return plain, err
	}
	// One of an earlier version, which bound it to nothing.
	if plain, unbound := i.opts.Cipher.Open([]byte(value)); unbound == nil {
		return plain, nil
	}
	return nil, err
}

// encode returns a response as the scripts take it: status, header, body,
// tombstone, sealed. One that is too large is stored as a tombstone, with
// its Location, since refusing it would leave a finished run without an end.
func (i *Idempotency) encode(id idempotency.ID, a idempotency.Response) ([]any, error) {
	header, err := marshal(a.Header)
	if err != nil {
		return nil, err
	}
	body := a.Body
	if len(header)+len(body) > i.opts.MaxResponse {
		a.Tombstone, body = idempotency.Oversize, nil
		kept := http.Header{}
		if l := a.Header.Get("Location"); len(l) <= maxLocation && l != "" {
			kept.Set("Location", l)
		}
		if header, err = marshal(kept); err != nil {
			return nil, err
		}
	}
	if i.opts.Cipher != nil {
		if header, err = i.seal(id, "header", header); err == nil && len(body) > 0 {
			body, err = i.seal(id, "body", body)
		}
		if err != nil {
			return nil, err
		}
	}
	return []any{a.Status, header, body, a.Tombstone, bit(i.opts.Cipher != nil)}, nil
}

// marshal writes headers as JSON, and none as nothing.
func marshal(h http.Header) ([]byte, error) {
	if len(h) == 0 {
		return nil, nil
	}
	return json.Marshal(h)
}

// verdict reads the script's response to a claim. It has two shapes: seven
// numbers for a claim that was granted, and outcome, time and record for any
// other.
func (i *Idempotency) verdict(c idempotency.Claim, got []any) (v idempotency.Verdict, err error) {
	numbers := make([]int64, 0, 7)
	for _, g := range got {
		if n, ok := g.(int64); ok {
			numbers = append(numbers, n)
		}
	}
	switch {
	case len(numbers) == 7 && idempotency.ClaimOutcome(numbers[0]) == idempotency.Acquired:
		v.Outcome = idempotency.Acquired
		v.Record = idempotency.Record{
			ID: c.ID, Fingerprint: c.Fingerprint, Operation: clip(c.Operation), State: idempotency.Started, Rerun: c.Rerun, Owner: c.Owner,
			Fence: numbers[2], Attempt: int(numbers[3]), Created: at(numbers[4]), LeaseEnd: at(numbers[5]), Expires: at(numbers[6]),
		}
	case len(numbers) == 2 && len(got) == 3 && numbers[0] > int64(idempotency.Acquired) && numbers[0] <= int64(idempotency.Unknown):
		values, _ := got[2].([]any)
		v.Outcome = idempotency.ClaimOutcome(numbers[0])
		if v.Record, err = i.decode(c.ID, values); err != nil {
			return idempotency.Verdict{}, err
		}
	default:
		return v, errors.New("the script's response cannot be read")
	}
	v.LeaseLeft = max(v.Record.LeaseEnd.Sub(at(numbers[1])), 0)
	return v, nil
}
