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
)

// part is the work on one partition.
type part struct {
	r     *Runner
	at    place
	stop  context.CancelFunc
	ended chan struct{}
	added chan struct{} // something was added

	mu     sync.Mutex
	paused bool
	fresh  []*item
	window []*item // not settled, or behind one that is not, by offset
	aside  []*item // to come again
}

type item struct {
	record  *kgo.Record
	due     time.Time
	settled bool
}

func newPart(r *Runner, at place) *part {
	return &part{r: r, at: at, ended: make(chan struct{}), added: make(chan struct{}, 1)}
}

// start works until the partition is taken away, or ctx ends.
func (p *part) start(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	go func() {
		defer close(p.ended)
		for p.r.to.Ready(ctx) == nil {
			it, wait := p.next(time.Now())
			if it == nil {
				p.idle(ctx, wait)
				continue
			}
			p.handle(ctx, it)
		}
	}()
}

// idle waits for something to do.
func (p *part) idle(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-p.added:
	case <-t.C:
	}
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
	select {
	case p.added <- struct{}{}:
	default:
	}
}

func (p *part) partition() map[string][]int32 { return map[string][]int32{p.at.topic: {p.at.part}} }

// next returns what is to be handled now: what was set aside and is due, before
// what is new. Without any it returns how long to wait.
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
		return nil, wait
	}
	it, p.fresh = p.fresh[0], p.fresh[1:]
	return it, 0
}

func (p *part) handle(ctx context.Context, it *item) {
	e, err := p.r.Decode(it.record)
	var d consume.Decision
	if err != nil {
		d = p.r.to.Poison(ctx, e, deadletter.ReasonUndecodable, err.Error())
	} else {
		d = p.r.to.Consume(ctx, e)
	}
	p.settle(it, d)
}

// settle sets an item aside, or moves the mark that is committed up to the
// first one that is not settled.
func (p *part) settle(it *item, d consume.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !d.Acknowledge() {
		now := time.Now()
		it.due = now.Add(d.Wait(now))
		p.aside = append(p.aside, it)
		return
	}
	it.settled = true
	n := 0
	for n < len(p.window) && p.window[n].settled {
		n++
	}
	if n == 0 {
		return
	}
	p.r.client.MarkCommitRecords(p.window[n-1].record)
	p.window = p.window[n:]
	if p.paused && len(p.window) <= p.r.Window/2 {
		p.paused = false
		p.r.client.ResumeFetchPartitions(p.partition())
	}
}

// Decode reads a CloudEvent, or makes an event of another record: its id is the
// offset, its source topic and partition, its type the topic. The key is the
// record's where the event has none.
func Decode(rec *kgo.Record) (consume.Event, error) {
	headers := make([]deadletter.Header, len(rec.Headers))
	for i, h := range rec.Headers {
		headers[i] = deadletter.Header{Name: h.Key, Value: string(h.Value)}
	}
	e, err := consume.Kafka.Decode(headers, rec.Value)
	if errors.Is(err, consume.ErrNotCloudEvent) {
		e.ID, e.Source, e.Type, err = fmt.Sprint(rec.Offset), fmt.Sprintf("kafka:%s/%d", rec.Topic, rec.Partition), rec.Topic, nil
	}
	e.Key = cmp.Or(e.Key, string(rec.Key))
	e.Time = cmp.Or(e.Time, rec.Timestamp)
	return e, err
}
