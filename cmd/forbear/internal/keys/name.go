package keys

import (
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"github.com/forbear-go/forbear/idempotency"
)

// naming is how an operator names a record: by its scope and the digest, as a
// list shows them, or by the key that the customer has. The key goes no further
// than its digest: it may be worth as much as the request, and what is printed,
// audited or said in an error may end in a log.
type naming struct {
	scope, key, source string
}

// maxKey bounds a key that is read from standard input, in bytes. An event's id may
// be longer than a request's key.
const maxKey = 4 << 10

// into puts the name into a filter.
func (n *naming) into(f *idempotency.Filter, operands []string, in io.Reader) error {
	switch {
	case n.key == "" && n.source != "":
		return errors.New("--source needs --key, the id of the event")
	case n.key == "" && len(operands) == 2:
		f.Scope, f.Key = operands[0], operands[1]
		// A key in its place would be looked for in vain, and then stand in
		// the audit trail.
		if b, err := base64.RawURLEncoding.DecodeString(f.Key); f.Scope == "" || err != nil || len(b) != 32 {
			return errors.New("want the scope and digest that forbear keys list shows, or the key itself with --key")
		}
		return nil
	case n.key == "" || len(operands) > 0:
		return errors.New("want either the scope and digest that forbear keys list shows, or --key")
	}
	raw := n.key
	if raw == "-" {
		b, err := io.ReadAll(io.LimitReader(in, maxKey+1))
		if err != nil {
			return errors.New("the key cannot be read from standard input")
		}
		raw = strings.TrimRight(string(b), "\r\n")
	}
	if len(raw) > maxKey {
		return errors.New("the key is longer than 4 KiB")
	}
	if n.scope != "" {
		f.Scope = idempotency.ScopeOf(n.scope)
	}
	if n.source != "" {
		f.Key = idempotency.Digest(n.source, raw)
		return nil
	}
	key, err := idempotency.ParseKey(raw)
	if err != nil {
		return err
	}
	f.Key = idempotency.Digest(key)
	return nil
}
