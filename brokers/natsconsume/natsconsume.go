// Package natsconsume brings events from NATS JetStream to package consume.
//
// The consumer must be durable, acknowledge explicitly and never stop
// delivering (MaxDeliver -1): JetStream has no dead-letter queue, so that a
// message beyond MaxDeliver would be dropped silently. An event that
// comes again later is negatively acknowledged with its delay and stays with
// the server. It counts against MaxAckPending in the meantime: choose that
// larger than the number of events that may wait. Those whose retry is due within a
// moment wait here (see [consume.Options.InPlace]), up to 16 for each handler.
//
// When a connection breaks, the server brings what was on its way again after
// AckWait, behind later messages. An ordered consumer that must keep the order of a
// key then needs MaxAckPending 1, which means one event at a time.
//
// A stream with a limit (MaxAge, MaxMsgs, MaxBytes, MaxMsgsPerSubject) and DiscardOld drops
// events that were not handled, and memory storage ends with its server. Run does not see the
// stream: check it. DeliverPolicy New or Last leaves out existing events.
//
// Experimental: what this package exports may change in any version.
package natsconsume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/slots"
	"github.com/forbear-go/forbear/internal/wait"
)

// Options say how [Run] works. The zero value handles eight events at once.
type Options struct {
	// Concurrency is the number of handlers at once. Default 8.
	Concurrency int
	// Decode makes an event of a message. Nil means [Decode]. What it returns
	// beside an error goes into the dead letter.
	Decode func(jetstream.Msg) (consume.Event, error)
	// Logger gets what an operator should see. Nil means slog.Default().
	Logger *slog.Logger
}

const (
	// ackTimeout bounds the wait for the server to confirm an acknowledgment, or to
	// say whether the consumer is still there.
	ackTimeout = 5 * time.Second
	// A server that says nothing for twice the heartbeat has lost the connection, or
	// the consumer. The default would tell after a minute.
	pullFor   = 20 * time.Second
	heartbeat = 2 * time.Second
	look      = 5 * time.Second
)

// Run handles the consumer's messages until ctx ends, which is no error;
// events under way are brought to their end first. It returns an error when
// the consumer or its stream is gone, or unfit. Reconnecting is left to the connection.
func Run(ctx context.Context, from jetstream.Consumer, to *consume.Consumer, o Options) error {
	if from == nil || to == nil || o.Concurrency < 0 {
		return errors.New("natsconsume: want a JetStream consumer, a consume.Consumer, and a Concurrency of 0 or more")
	}
	r := &runner{to: to, decode: o.Decode, log: cmp.Or(o.Logger, slog.Default())}
	if r.decode == nil {
		r.decode = Decode
	}
	if err := r.fit(ctx, from); err != nil {
		return err
	}
	n := cmp.Or(o.Concurrency, 8)
	messages, err := from.Messages(jetstream.PullMaxMessages(min(2*n, r.batch)), jetstream.PullExpiry(r.pull), jetstream.PullHeartbeat(min(heartbeat, r.pull/3)))
	if err != nil {
		return fmt.Errorf("natsconsume: %w", err)
	}
	// Of ctx itself: one that is derived from the same could end before it, and the end
	// of the messages would look like an error.
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, messages.Stop)()
	defer messages.Stop()
	pool := slots.New(n)
	defer pool.Close()
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel() // for events that wait, when it ends with an error
	watch.Go(func() { r.watch(ctx, from, pool) })
	for ctx.Err() == nil {
		msg, err := messages.Next()
		switch {
		case err == nil:
			r.take(ctx, pool, msg)
		case ctx.Err() != nil:
		default:
			if end := r.gone(ctx, from, err); end != nil {
				return fmt.Errorf("natsconsume: %w", end)
			} // Such as a missed heartbeat of a server that restarts.
			r.log.LogAttrs(ctx, slog.LevelWarn, "events not fetched", slog.String("error", err.Error()))
		}
	}
	return nil
}

// runner is what one call of Run needs in its goroutines. All but the last does not
// change after fit.
type runner struct {
	to     *consume.Consumer
	decode func(jetstream.Msg) (consume.Event, error)
	log    *slog.Logger
	wait   time.Duration // the consumer's shortest AckWait
	batch  int           // the most messages that may be asked for
	pull   time.Duration // the longest that a request may last
	gave   atomic.Bool   // back an event that may still wait at the server
}

// fit refuses a consumer that does not fit, and keeps to its limits. All faults are named
// at once.
func (r *runner) fit(ctx context.Context, from jetstream.Consumer) error {
	info, err := from.Info(ctx)
	if err != nil {
		return fmt.Errorf("natsconsume: %w", err)
	}
	r.wait, r.batch, r.pull = ackWait(info.Config), cmp.Or(info.Config.MaxRequestBatch, math.MaxInt), longestPull(info.Config)
	return faults(info)
}

// gone returns what ends the fetching permanently, nil when err does not. When consumer or
// stream are deleted while a fetch waits, the server just falls silent, so that it is
// asked.
func (r *runner) gone(ctx context.Context, from jetstream.Consumer, err error) error {
	if errors.Is(err, jetstream.ErrNoHeartbeat) {
		limited, cancel := context.WithTimeout(ctx, ackTimeout)
		defer cancel()
		_, err = from.Info(limited)
	}
	for _, end := range []error{
		jetstream.ErrMsgIteratorClosed, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound, nats.ErrConnectionClosed,
	} {
		if errors.Is(err, end) {
			return err
		}
	}
	return nil
}

// take hands a message to the pool, and keeps it in progress at the server
// from here on: it may wait in line for longer than AckWait.
func (r *runner) take(ctx context.Context, pool *slots.Pool, msg jetstream.Msg) {
	// A third of AckWait leaves room for two lost requests.
	done := wait.Every(r.wait/3, func() time.Duration {
		_ = msg.InProgress() // the next one may work; without, it is a duplicate
		return r.wait / 3
	})
	e, err := r.decode(msg)
	key := ""
	if r.to.Ordered {
		key = e.Key
	}
	taken := pool.Do(ctx, key, func(ctx context.Context) {
		defer done()
		if r.to.Ready(ctx) != nil {
			_ = msg.Nak()
			return
		}
		if err != nil {
			r.writeBack(ctx, msg, r.to.Poison(ctx, e, deadletter.ReasonUndecodable, err.Error()))
			return
		}
		r.writeBack(ctx, msg, r.to.Consume(ctx, e))
	})
	if !taken {
		done()
		_ = msg.Nak()
	}
}

// watch tells when events that wait for their retries have used up MaxAckPending, and the
// server delivers nothing else.
func (r *runner) watch(ctx context.Context, from jetstream.Consumer, pool *slots.Pool) {
	moves := func() {}
	defer func() { moves() }()
	for full := false; wait.Sleep(ctx, look/2+wait.Jitter(look/2)); {
		if !full && (!pool.Idle() || !r.gave.Load()) {
			continue // the server need not be asked
		}
		r.gave.Store(false)
		limited, cancel := context.WithTimeout(ctx, ackTimeout)
		info, err := from.Info(limited)
		cancel()
		if err != nil || info.NumAckPending > 0 {
			r.gave.Store(true)
		}
		if err != nil {
			continue
		}
		was := full
		full = info.Config.MaxAckPending > 0 && info.NumAckPending >= info.Config.MaxAckPending && info.NumPending > 0 && pool.Idle()
		switch {
		case full && !was:
			moves = r.to.Full("nats:"+info.Stream+"/"+info.Name, info.NumAckPending)
		case was && !full:
			moves()
			moves = func() {}
		}
	}
}

// writeBack writes the decision back to the server. An acknowledgment is
// confirmed by the server. A message whose decision did not arrive comes
// again, and is dropped as a duplicate then.
func (r *runner) writeBack(ctx context.Context, msg jetstream.Msg, d consume.Decision) {
	var err error
	if d.Acknowledge() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTimeout)
		defer cancel()
		err = msg.DoubleAck(limited)
	} else {
		// A delay of zero would mean no delay given, and the server's own
		// backoff.
		r.gave.Store(true)
		err = msg.NakWithDelay(max(d.Wait(time.Now()), time.Millisecond))
	}
	if err != nil {
		r.log.LogAttrs(ctx, slog.LevelWarn, "event not acknowledged: it will be delivered again", slog.String("reason", d.Reason), slog.String("error", err.Error()))
	}
}

// Decode reads a CloudEvent, or makes an event of any other message: its id
// is the header Nats-Msg-Id or the sequence number in the stream, its source
// is the stream, and its type and key are the subject. A stream that is made again under
// its name counts from 1 again, so that beside a number the source has the time at which
// the message was stored, in ns.
func Decode(msg jetstream.Msg) (consume.Event, error) {
	var headers []deadletter.Header
	for _, name := range slices.Sorted(maps.Keys(msg.Headers())) {
		for _, v := range msg.Headers()[name] {
			headers = append(headers, deadletter.Header{Name: name, Value: v})
		}
	}
	e, err := consume.NATS.Decode(headers, msg.Data())
	at, metaErr := msg.Metadata()
	if metaErr != nil {
		return e, errors.Join(err, metaErr)
	}
	if errors.Is(err, consume.ErrNotCloudEvent) {
		e.ID, e.Source, e.Type, err = msg.Headers().Get(jetstream.MsgIDHeader), "nats:"+at.Stream, msg.Subject(), nil
		if e.ID == "" {
			e.ID = strconv.FormatUint(at.Sequence.Stream, 10)
			e.Source += "@" + strconv.FormatInt(at.Timestamp.UnixNano(), 10)
		}
	}
	e.Key = cmp.Or(e.Key, msg.Subject())
	e.Time = cmp.Or(e.Time, at.Timestamp)
	return e, err
}
