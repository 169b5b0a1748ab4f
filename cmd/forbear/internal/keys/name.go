package keys

import (
	"errors"
	"io"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/idempotency"
)

// naming is how an operator names a record: by its scope and the digest, as a
// list shows them, or by the key that the customer has. The key goes no further
// than its digest: it may be worth as much as the request, and what is printed,
// audited or said in an error may end in a log.
type naming struct {
	scope, key, source string
}

// into puts the name into a filter.
func (n *naming) into(f *idempotency.Filter, operands []string, in io.Reader) error {
	switch {
	case n.key == "" && n.source != "":
		return errors.New("--source needs --key, the id of the event")
	case n.key == "" && len(operands) == 2:
		f.Scope, f.Key = operands[0], operands[1]
		if f.Scope == "" || !durable.IsDigest(f.Key) {
			return errors.New("want the scope and digest that forbear keys list shows, or the key itself with --key")
		}
		return nil
	case n.key == "" || len(operands) > 0:
		return errors.New("want either the scope and digest that forbear keys list shows, or --key")
	}
	raw := n.key
	if raw == "-" {
		b, err := io.ReadAll(io.LimitReader(in, durable.MaxKey+1))
		if err != nil {
			return errors.New("the key cannot be read from standard input")
		}
		raw = strings.TrimRight(string(b), "\r\n")
	}
	found, err := durable.FindKey(raw, n.scope, n.source)
	if err == nil {
		f.Scope, f.Key = found.Scope, found.Key
	}
	return err
}
