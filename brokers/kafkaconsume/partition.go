package kafkaconsume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/slots"
	"github.com/forbear-go/forbear/internal/wait"
)

// part is the work on one partition: a slot for its records, and the runner's
// goroutine that adds.
type part struct {
	r     *Runner
	at    place
	stop  context.CancelFunc
	ended chan struct{}
	// added receives when something was added or set aside. One signal is enough, since
	// the goroutine looks at everything when it wakes.
	added chan struct{}

	mu sync.Mutex
	// paused is set while the window is full, moves while all in it only wait.
	paused bool
	moves  func()
	fresh  []*item
	window []*item // not acknowledged, or behind one that is not, by offset
	aside  []*item // to come again
}

// item is a record in the window. due is set for one that was put aside.
type item struct {
	record *kgo.Record
	due    time.Time
	acked  bool
}

// start works until the partition is taken away or ctx ends. Ready waits
// while the breaker is open, so that nothing is taken up only to be put
// aside.
func (p *part) start(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	go func() {
		defer close(p.ended)
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.moved()
		}()
		slot := slots.New(1)
		defer slot.Close()
		for p.r.to.Ready(ctx) == nil {
			it, rest := p.next(time.Now())
			if it == nil {
				// Until a record was added, or one that was set aside is due.
				wait.Woken(ctx, rest, p.added)
				continue
			}
			p.take(ctx, slot, it)
		}
	}()
}

// add takes fetched records, and pauses the partition when they are too many.
func (p *part) add(records []*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rec := range records {
		it := &item{record: rec}
		p.fresh = append(p.fresh, it)
		p.window = append(p.window, it)
	}
	if !p.paused && len(p.window) >= p.r.Window {
		p.paused = true
		p.r.client.PauseFetchPartitions(p.partition())
	}
	p.wake()
}

// wake lets the goroutine that takes records look again.
func (p *part) wake() {
	select {
	case p.added <- struct{}{}:
	default:
	}
}

// partition is this one in the form that the client's calls take.
func (p *part) partition() map[string][]int32 { return map[string][]int32{p.at.topic: {p.at.part}} }

// next returns what is to be handled now: what was set aside and is due
// comes before what is new. Without either it returns how long to wait.
func (p *part) next(now time.Time) (it *item, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = time.Minute
	if len(p.aside) > 0 {
		first := 0
		for i, it := range p.aside {
			if it.due.Before(p.aside[first].due) {
				first = i
			}
		}
		if it = p.aside[first]; !it.due.After(now) {
			p.aside = slices.Delete(p.aside, first, first+1)
			return it, 0
		}
		wait = min(wait, it.due.Sub(now))
	}
	if len(p.fresh) == 0 {
		if p.paused && len(p.aside) > 0 && p.moves == nil {
			p.moves = p.r.to.Full(fmt.Sprintf("kafka:%s/%d", p.at.topic, p.at.part), len(p.aside))
		}
		return nil, wait
	}
	it, p.fresh = p.fresh[0], p.fresh[1:]
	return it, 0
}

// take decides about one record in the partition's slot, after those of its key
// where order was asked for. What cannot be decoded goes to the dead-letter queue
// with its reason.
func (p *part) take(ctx context.Context, slot *slots.Pool, it *item) {
	e, err := p.r.Decode(it.record)
	key := ""
	if p.r.to.Ordered {
		key = e.Key
	}
	slot.Do(ctx, key, func(ctx context.Context) {
		if err != nil {
			p.writeBack(it, p.r.to.Poison(ctx, e, deadletter.ReasonUndecodable, err.Error()))
			return
		}
		p.writeBack(it, p.r.to.Consume(ctx, e))
	})
}

// writeBack puts an item aside, or moves the mark for the next commit up to the
// first item that is not acknowledged. Kafka knows one offset for each
// partition, so that an acknowledged record behind an open one has to wait.
func (p *part) writeBack(it *item, d consume.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !d.Acknowledge() {
		now := time.Now()
		it.due = now.Add(d.Wait(now))
		p.aside = append(p.aside, it)
		p.wake()
		return
	}
	it.acked = true
	n := 0
	for n < len(p.window) && p.window[n].acked {
		n++
	}
	if n == 0 {
		return
	}
	p.r.client.MarkCommitRecords(p.window[n-1].record)
	p.window = p.window[n:]
	// Resuming at half the window keeps the partition from pausing at every
	// record.
	if p.paused && len(p.window) <= p.r.Window/2 {
		p.paused = false
		p.r.client.ResumeFetchPartitions(p.partition())
		p.moved()
	}
}

// moved ends what next has told. The caller holds mu.
func (p *part) moved() {
	if p.moves != nil {
		p.moves()
		p.moves = nil
	}
}

// Decode reads a CloudEvent, or makes an event of any other record: its id
// is the offset, its source is topic, partition and the record's timestamp in ms, and its
// type is the topic. The record's key is used where the event has none. A topic that is
// made again under its name counts from 0 again, at another time.
func Decode(rec *kgo.Record) (consume.Event, error) {
	headers := make([]deadletter.Header, len(rec.Headers))
	for i, h := range rec.Headers {
		headers[i] = deadletter.Header{Name: h.Key, Value: string(h.Value)}
	}
	e, err := consume.Kafka.Decode(headers, rec.Value)
	if errors.Is(err, consume.ErrNotCloudEvent) {
		e.ID, e.Source, e.Type, err = fmt.Sprint(rec.Offset), fmt.Sprintf("kafka:%s/%d@%d", rec.Topic, rec.Partition, rec.Timestamp.UnixMilli()), rec.Topic, nil
	}
	e.Key = cmp.Or(e.Key, string(rec.Key))
	e.Time = cmp.Or(e.Time, rec.Timestamp)
	return e, err
}
