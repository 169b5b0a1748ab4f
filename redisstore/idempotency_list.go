package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/idempotency"
)

// Get implements idempotency.Store.
func (i *Idempotency) Get(ctx context.Context, id idempotency.ID) (idempotency.Record, error) {
	values, err := i.client.HMGet(ctx, i.name(id), fields...).Result()
	if err != nil {
		return idempotency.Record{}, failed("get", err)
	}
	rec, err := i.decode(id, values)
	if err != nil {
		return idempotency.Record{}, failed("get", err)
	}
	return rec, nil
}

// Resolve implements idempotency.Store.
func (i *Idempotency) Resolve(ctx context.Context, id idempotency.ID, res idempotency.Resolution) error {
	args := []any{clip(res.Text()), res.Fence, bit(res.Response != nil)}
	if res.Response != nil {
		response, err := i.encode(id, *res.Response)
		if err != nil {
			return failed("resolve", err)
		}
		args = append(args, response...)
	}
	done, err := resolveScript.Run(ctx, i.client, []string{i.name(id)}, args...).Int()
	switch {
	case err != nil:
	case done == 0:
		err = idempotency.ErrNotFound
	case done < 0:
		err = idempotency.ErrNotHeld
	}
	return failed("resolve", err)
}

// scanCount is how many names the server looks at in one step.
const scanCount = 500

// nodes calls f for each server that has records, for several at the same
// time: f guards what it shares.
func (i *Idempotency) nodes(ctx context.Context, f func(ctx context.Context, node string, c redis.Cmdable) error) error {
	each := func(ctx context.Context, c *redis.Client) error { return f(ctx, c.Options().Addr, c) }
	switch c := i.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, each)
	case *redis.Ring:
		return c.ForEachShard(ctx, each)
	default:
		return f(ctx, "", c)
	}
}

// scan calls f with the names of a node's records, step by step from cursor on, until it
// returns false. next is where to go on after the step; 0: it was the last.
func scan(ctx context.Context, c redis.Cmdable, cursor uint64, match string, f func(names []string, next uint64) (more bool, err error)) error {
	for {
		names, next, err := c.Scan(ctx, cursor, match, scanCount).Result()
		if err != nil {
			return err
		}
		more, err := f(names, next)
		if cursor = next; err != nil || !more || cursor == 0 {
			return err
		}
	}
}

// List implements idempotency.Store. It scans the names of all records, step
// by step. Held records alone have no expiry, so that these are found
// without reading the others. Records that come or go in the meantime may be
// missed.
func (i *Idempotency) List(ctx context.Context, f idempotency.Filter) ([]idempotency.Record, error) {
	p := &page{filter: f}
	var mu sync.Mutex
	match := i.all()
	if f.Scope != "" {
		match = escape(fmt.Sprintf("%s%d:%s:", i.opts.Prefix, len(f.Scope), f.Scope)) + "*"
	}
	switch {
	case f.Key != "" && f.Scope != "": // there is one such record at most: no scan
		now, err := i.client.Time(ctx).Result()
		if err == nil {
			err = i.collect(ctx, i.client, p, []string{i.name(idempotency.ID{Scope: f.Scope, Key: f.Key})}, now)
		}
		return p.records, failed("list", err)
	case f.Key != "":
		match += ":" + escape(f.Key)
	}
	err := i.nodes(ctx, func(ctx context.Context, _ string, c redis.Cmdable) error {
		now, err := c.Time(ctx).Result()
		if err != nil {
			return err
		}
		return scan(ctx, c, 0, match, func(names []string, _ uint64) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return true, i.collect(ctx, c, p, names, now)
		})
	})
	if err != nil {
		return nil, failed("list", err)
	}
	return p.records, nil
}

// all is the pattern of the names of all records.
func (i *Idempotency) all() string { return escape(i.opts.Prefix) + "*" }

// collect puts those of the named records into the page that belong there.
// It reads names first and records second, since most names of a scan belong
// on no page.
func (i *Idempotency) collect(ctx context.Context, c redis.Cmdable, p *page, names []string, now time.Time) error {
	names = slices.DeleteFunc(names, func(n string) bool {
		id, ok := i.parse(n)
		return !ok || !p.wants(id)
	})
	if p.filter.State == idempotency.Held {
		var err error
		if names, err = living(ctx, c, names, func(ttl time.Duration) bool { return ttl < 0 }); err != nil {
			return err
		}
	}
	return i.read(ctx, c, names, func(rec idempotency.Record) { p.put(rec, now) })
}

// read calls f for each of the named records that is there, without its body.
func (i *Idempotency) read(ctx context.Context, c redis.Cmdable, names []string, f func(idempotency.Record)) error {
	names = slices.DeleteFunc(names, func(n string) bool { _, ok := i.parse(n); return !ok })
	if len(names) == 0 {
		return nil
	}
	head := fields[:len(fields)-1] // all but the body
	got, err := c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, n := range names {
			pipe.HMGet(ctx, n, head...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, g := range got {
		id, _ := i.parse(names[k])
		rec, err := i.decode(id, append(g.(*redis.SliceCmd).Val(), nil))
		if errors.Is(err, idempotency.ErrNotFound) {
			continue // expired meanwhile
		}
		if err != nil {
			return err
		}
		f(rec)
	}
	return nil
}

// living returns the names whose time to live is as wanted; a negative one
// stands for none.
func living(ctx context.Context, c redis.Cmdable, names []string, wanted func(ttl time.Duration) bool) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	got, err := c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, n := range names {
			pipe.PTTL(ctx, n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept := names[:0]
	for k, g := range got {
		if wanted(g.(*redis.DurationCmd).Val()) {
			kept = append(kept, names[k])
		}
	}
	return kept, nil
}

// page is the beginning of a list: the first records, by their ID, that a
// filter chooses. A scan has no order, so that the page is kept sorted and
// cut while the scan goes on.
type page struct {
	filter  idempotency.Filter
	records []idempotency.Record
}

// compare is the order of lists.
func compare(a, b idempotency.ID) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
}

// wants reports whether a record of that name may still come into the page.
func (p *page) wants(id idempotency.ID) bool {
	if p.filter.After != (idempotency.ID{}) && compare(id, p.filter.After) <= 0 {
		return false
	}
	if p.filter.Key != "" && id.Key != p.filter.Key {
		return false
	}
	return len(p.records) < p.filter.Max() || compare(id, p.records[len(p.records)-1].ID) < 0
}

// put inserts a record, brought up to date first: an abandoned run counts as
// held.
func (p *page) put(rec idempotency.Record, now time.Time) {
	rec.HoldAbandoned(now)
	if p.filter.State != "" && rec.State != p.filter.State {
		return
	}
	k, found := slices.BinarySearchFunc(p.records, rec.ID, func(r idempotency.Record, id idempotency.ID) int { return compare(r.ID, id) })
	if found { // a scan may name a key twice
		return
	}
	p.records = slices.Insert(p.records, k, rec)
	p.records = p.records[:min(len(p.records), p.filter.Max())]
}

// escape makes a text stand for itself in a pattern: a scope with an
// asterisk must not list its neighbors' records.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// grace is how long a record outlives its expiry, so that its fence survives
// a late write. The scripts' prelude has the same figure.
const grace = time.Hour

// Sweep implements idempotency.Store. The server deletes expired records by itself, an
// hour after their time; a sweep looks at all names and frees the memory sooner.
func (i *Idempotency) Sweep(ctx context.Context, limit int) (n int, err error) {
	var mu sync.Mutex
	err = i.nodes(ctx, func(ctx context.Context, _ string, c redis.Cmdable) error {
		return scan(ctx, c, 0, i.all(), func(names []string, _ uint64) (bool, error) {
			expired, err := living(ctx, c, names, func(ttl time.Duration) bool { return ttl >= 0 && ttl <= grace })
			mu.Lock()
			defer mu.Unlock()
			for _, name := range expired[:min(len(expired), limit-n)] {
				// The script looks again: it may have been claimed meanwhile.
				gone, err := sweepScript.Run(ctx, i.client, []string{name}).Int()
				if err != nil {
					return false, err
				}
				n += gone
			}
			return n < limit, err
		})
	})
	return n, failed("sweep", err)
}
