package forbear

import (
	"fmt"
	"time"
)

// Kind says in which setting a call is retried. It chooses the defaults and
// the allowed ranges of a [Policy]. The zero value is Sync.
type Kind uint8

// The kinds of R-2.
const (
	Sync    Kind = iota // a synchronous API call
	GRPC                // a unary gRPC call
	Event               // processing of an event from a queue
	Webhook             // delivery of a webhook
	Batch               // one item of a batch job
)

// limits are the figures of one kind: R-2 for the counts, R-3 for the total,
// INTG-STD-035 for the attempt.
type limits struct {
	name             string
	count, low, high int // retries; for Webhook, attempts
	total            time.Duration
	attempt          time.Duration
}

var kinds = [...]limits{
	Sync:    {"sync", 3, 1, 5, 30 * time.Second, 5 * time.Second},
	GRPC:    {"grpc", 3, 1, 5, 30 * time.Second, 5 * time.Second},
	Event:   {"event", 5, 1, 10, 24 * time.Hour, 60 * time.Second},
	Webhook: {"webhook", 5, 3, 8, 24 * time.Hour, 10 * time.Second},
	Batch:   {"batch", 3, 1, 5, 30 * time.Second, 5 * time.Second},
}

func (k Kind) limits() limits {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return kinds[Sync]
}

// Durable reports whether work of this kind outlives the process that tries
// it: its attempts are persisted, and what cannot be done becomes a dead
// letter.
func (k Kind) Durable() bool { return k == Event || k == Webhook }

// earns reports whether work of this kind may wait instead of being refused: see
// [earnings].
func (k Kind) earns() bool { return k.Durable() || k == Batch }

// Range returns the default and the allowed range of the count of k:
// attempts for Webhook, retries for every other kind.
func (k Kind) Range() (def, low, high int) {
	l := k.limits()
	return l.count, l.low, l.high
}

// String returns the name that policy files use.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// parseKind is the inverse of [Kind.String].
func parseKind(name string) (Kind, error) {
	for k, l := range kinds {
		if l.name == name {
			return Kind(k), nil
		}
	}
	return Sync, fmt.Errorf("unknown kind %q: want sync, grpc, event, webhook or batch", name)
}

// MarshalText implements [encoding.TextMarshaler].
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *Kind) UnmarshalText(text []byte) (err error) {
	*k, err = parseKind(string(text))
	return err
}
