package natsconsume

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// faults lists the settings of a consumer under which events would be lost, or none be
// handled, each with what to set. Of its stream a consumer says nothing.
func faults(info *jetstream.ConsumerInfo) error {
	var errs []error
	refuse := func(unfit bool, format string, args ...any) {
		if unfit {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	c := info.Config
	refuse(c.AckPolicy != jetstream.AckExplicitPolicy, "AckPolicy is %v: want AckExplicitPolicy", c.AckPolicy)
	refuse(c.MaxDeliver > 0, "MaxDeliver %d would drop events after that many deliveries: want -1 (R-8)", c.MaxDeliver)
	refuse(c.Durable == "", "it is ephemeral, and would lose unacknowledged events with this process: want a Durable name")
	refuse(c.InactiveThreshold > 0, "InactiveThreshold %v would delete it while no process runs: want 0", c.InactiveThreshold)
	refuse(c.MemoryStorage && (info.Cluster == nil || len(info.Cluster.Replicas) == 0), "MemoryStorage without replicas would delete it when the server restarts: want false")
	refuse(c.HeadersOnly, "HeadersOnly omits the bodies: want false")
	refuse(c.PriorityPolicy != jetstream.PriorityPolicyNone, "PriorityPolicy needs a group in each request: want PriorityPolicyNone")
	refuse(c.MaxWaiting == 1, "MaxWaiting 1 lets only one process fetch: want the number of processes, or 0")
	refuse(ackWait(c) < leastAckWait, "AckWait, or the shortest BackOff, is %v, and would redeliver events while they are handled: want %v or more", ackWait(c), leastAckWait)
	refuse(longestPull(c) < leastPull, "MaxRequestExpires %v: want 0, or %v or more", c.MaxRequestExpires, leastPull)
	refuse(c.MaxRequestMaxBytes > 0, "MaxRequestMaxBytes %d refuses requests without that bound: want 0", c.MaxRequestMaxBytes)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("natsconsume: consumer %q does not fit: %w", info.Name, err)
	}
	return nil
}

const (
	leastAckWait = time.Second
	leastPull    = time.Second // for which a consumer must let a request last
)

// ackWait is the shortest time after which the server delivers again what it heard nothing
// of. Without a setting JetStream uses 30 s; BackOff replaces AckWait, and its entry is
// that of the number of the delivery.
func ackWait(c jetstream.ConsumerConfig) time.Duration {
	if len(c.BackOff) > 0 {
		return slices.Min(c.BackOff)
	}
	return cmp.Or(c.AckWait, 30*time.Second)
}

// longestPull is how long a request may last.
func longestPull(c jetstream.ConsumerConfig) time.Duration {
	return min(pullFor, cmp.Or(c.MaxRequestExpires, pullFor))
}
