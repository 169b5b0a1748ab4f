// Package kafkaconsume brings events from Kafka to package consume, with
// franz-go.
// The records of a partition are handled one after the other. One that waits for
// its retry is set aside and does not delay those behind it; with an
// ordered [consume.Consumer] the later ones of its key wait for it. The
// committed offset is that before the first record that is not acknowledged,
// so that nothing is lost; what a restart delivers again beyond it is
// dropped by the consumer's deduplication. No retry topics are needed. When
// too many records wait for one that is set aside, the partition is paused.
//
// The topic's retention.ms, retention.bytes and cleanup.policy=compact drop records that were
// not handled: check them. A record with a null value is an event without data.
//
// Experimental: what this package exports may change in any version.
package kafkaconsume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/internal/wait"
)

// Options say how a [Runner] works. The zero value is ready to use.
type Options struct {
	// Window is how many records of a partition may be behind the first
	// that is not acknowledged. It bounds memory, and what a restart
	// delivers again. Default 10,000.
	Window int
	// Decode makes an event of a record. Nil means [Decode]. What it returns
	// beside an error goes into the dead letter.
	Decode func(*kgo.Record) (consume.Event, error)
	// Logger gets what an operator should see. Nil means slog.Default().
	Logger *slog.Logger
}

// Runner handles the records of a consumer group. Make it with [New]. Its
// callbacks run on goroutines of the client, so that parts is guarded.
type Runner struct {
	Options
	to     *consume.Consumer
	client *kgo.Client

	mu    sync.Mutex
	parts map[place]*part
}

// place names a partition.
type place struct {
	topic string
	part  int32
}

// New connects to the brokers that opts names, for its group and topics:
// kgo.SeedBrokers, kgo.ConsumerGroup and kgo.ConsumeTopics are needed. The
// runner commits by itself, and only marked records: an option that commits
// otherwise, or would lose events in another way, is refused. Records of a transaction
// come once it is committed, and never when it is aborted, unless opts has another
// kgo.FetchIsolationLevel. Of kgo.OnPartitionsRevoked, kgo.OnPartitionsLost and
// kgo.AutoCommitInterval the runner has its own.
func New(to *consume.Consumer, o Options, opts ...kgo.Opt) (*Runner, error) {
	if to == nil || o.Window < 0 {
		return nil, errors.New("kafkaconsume: want a consumer, and a Window of 0 or more")
	}
	if err := kgo.ValidateOpts(opts...); err != nil {
		return nil, fmt.Errorf("kafkaconsume: %w", err)
	}
	o.Window = cmp.Or(o.Window, 10_000)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Decode == nil {
		o.Decode = Decode
	}
	r := &Runner{Options: o, to: to, parts: map[place]*part{}}
	before := []kgo.Opt{kgo.FetchIsolationLevel(kgo.ReadCommitted())}
	client, err := kgo.NewClient(append(
		append(before, opts...),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(time.Second),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsRevoked(r.revoked),
		kgo.OnPartitionsLost(r.lost),
	)...)
	if err != nil { // opts are well by themselves
		return nil, fmt.Errorf("kafkaconsume: want kgo.ConsumerGroup, without kgo.ShareGroup, kgo.ConsumePartitions and options about commits: %w", err)
	}
	if err := fit(client); err != nil {
		client.CloseAllowingRebalance()
		return nil, err
	}
	r.client = client
	return r, nil
}

// The waits after fetches that brought nothing but errors, with full jitter.
const (
	fetchBase = 100 * time.Millisecond
	fetchCap  = 5 * time.Second
)

// Run handles records until ctx ends, which is no error. Those under way are
// brought to their end first, and what is acknowledged is committed. It can
// be called once. A topic that is deleted ends it with an error.
func (r *Runner) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go r.watch(ctx, cancel)
	defer r.client.CloseAllowingRebalance()
	defer func() {
		r.end(r.all())
		r.commit(context.WithoutCancel(ctx))
	}()
	back := wait.Backoff{Base: fetchBase, Cap: fetchCap}
	// What the breaker would not let through stays with the broker.
	for r.to.Ready(ctx) == nil {
		fetches := r.client.PollRecords(ctx, 1000)
		if fetches.IsClientClosed() {
			return errors.New("kafkaconsume: the client is closed")
		}
		// A fetch that failed is repeated by the client; an operator sees
		// the warning.
		failed := false
		fetches.EachError(func(topic string, part int32, err error) {
			failed = true
			if ctx.Err() == nil {
				r.Logger.LogAttrs(ctx, slog.LevelWarn, "events not fetched",
					slog.String("topic", topic), slog.Int("partition", int(part)), slog.String("error", err.Error()))
			}
		})
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			if len(f.Records) > 0 {
				r.part(ctx, place{f.Topic, f.Partition}).add(f.Records)
			}
		})
		// Rebalances are blocked while records are handed out, so that
		// none goes to a partition that was just taken away.
		r.client.AllowRebalance()
		if !failed {
			back.Reset()
		} else if fetches.NumRecords() == 0 { // such as from a topic that is deleted: at once, again and again
			wait.Sleep(ctx, back.Next())
		}
	}
	if err := context.Cause(ctx); errors.Is(err, errGone) {
		return err
	}
	return nil
}

// part returns the work on a partition, starting it at the first record.
func (r *Runner) part(ctx context.Context, at place) *part {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parts[at]
	if p == nil {
		p = &part{r: r, at: at, ended: make(chan struct{}), added: make(chan struct{}, 1)}
		p.start(ctx)
		r.parts[at] = p
	}
	return p
}

// all lists the partitions that are being worked on.
func (r *Runner) all() map[string][]int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]int32{}
	for at := range r.parts {
		all[at.topic] = append(all[at.topic], at.part)
	}
	return all
}

// end stops the work on partitions and waits until it has stopped. All are
// stopped before the first is waited for, since a handler may take its time.
func (r *Runner) end(parts map[string][]int32) {
	var ending []*part
	r.mu.Lock()
	for topic, list := range parts {
		for _, n := range list {
			if p := r.parts[place{topic, n}]; p != nil {
				ending = append(ending, p)
				delete(r.parts, p.at)
			}
		}
	}
	r.mu.Unlock()
	for _, p := range ending {
		p.stop()
	}
	for _, p := range ending {
		<-p.ended
	}
}

// commit commits what is marked, in at most five seconds: a rebalance waits
// for it. A failure loses nothing, since the events come again.
func (r *Runner) commit(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := r.client.CommitMarkedOffsets(ctx); err != nil {
		r.Logger.LogAttrs(ctx, slog.LevelWarn, "offsets not committed: events will be delivered again", slog.String("error", err.Error()))
	}
}

// revoked runs while another member waits for the partitions: it commits, so
// that the other begins where this one ended.
func (r *Runner) revoked(ctx context.Context, _ *kgo.Client, parts map[string][]int32) {
	r.end(parts)
	r.commit(ctx)
}

// lost runs too late to commit: another member has the partitions already.
func (r *Runner) lost(_ context.Context, _ *kgo.Client, parts map[string][]int32) { r.end(parts) }
