package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

// Statistics cost what they show and not what there is: what waits is counted on
// partial indexes, up to a number, and attempts are summed up from tallies.

// PutTallies implements store.Store.
func (w *Webhooks) PutTallies(ctx context.Context, owner string, list []store.Tally) error {
	return w.db.write(ctx, func(t *tx) error {
		for i := range list {
			l := &list[i]
			if _, err := t.exec(`INSERT INTO forbear_tallies (endpoint, slot, owner, counts) VALUES (?, ?, ?, ?)
				ON CONFLICT (endpoint, slot, owner) DO UPDATE SET counts = EXCLUDED.counts`, l.Endpoint, l.Slot, owner, asJSON{l.Counts}); err != nil {
				return err
			}
		}
		return nil
	})
}

// The windows of attempts. They begin with a slot, and so are up to a slot longer.
const (
	hour = time.Hour
	day  = 24 * time.Hour
)

// sweepTallies removes those that no window has any more.
func (t *tx) sweepTallies() error {
	_, err := t.exec(`DELETE FROM forbear_tallies WHERE slot < ?`, store.SlotOf(t.db.now().Add(-day-store.Slot)))
	return err
}

// backlogs counts what each endpoint has, each number up to a bound.
const backlogs = `SELECT e.value,
	(SELECT count(*) FROM (SELECT 1 FROM forbear_deliveries d WHERE d.endpoint = e.value AND d.` + stateWaiting + ` LIMIT ?) x),
	(SELECT count(*) FROM (SELECT 1 FROM forbear_deliveries d WHERE d.endpoint = e.value AND d.okey IS NOT NULL AND d.` + stateUnfinished + ` AND d.` + stateHeld + ` LIMIT ?) x),
	(SELECT count(*) FROM (SELECT 1 FROM forbear_deliveries d WHERE d.endpoint = e.value AND ` + stateUnreadable + ` LIMIT ?) x),
	(SELECT count(*) FROM (SELECT 1 FROM forbear_letters l WHERE substr(l.dest, 1, 64) = e.value AND l.` + letterDead + ` LIMIT ?) x),
	COALESCE((SELECT min(d.due) FROM forbear_deliveries d WHERE d.endpoint = e.value AND d.` + stateWaiting + `), 0), {t}
	FROM {texts} e`

// EndpointStats returns how endpoints fare, in the order of their ids in the call.
// Of what waits at most so many are counted for each.
func (w *Webhooks) EndpointStats(ctx context.Context, endpoints []string, most int) ([]store.EndpointStats, error) {
	list := make([]store.EndpointStats, len(endpoints))
	index := make(map[string]*store.EndpointStats, len(endpoints))
	for i, id := range endpoints {
		list[i].Endpoint, index[id] = id, &list[i]
	}
	err := w.db.each(ctx, func(r *sql.Rows) error {
		var id string
		var s store.EndpointStats
		var due, now int64
		if err := r.Scan(&id, &s.Waiting, &s.Held, &s.Unreadable, &s.DeadLetters, &due, &now); err != nil {
			return err
		}
		if s.Endpoint, s.NextAttempt = id, at(due); due > 0 {
			s.OldestAge = max(at(now).Sub(s.NextAttempt), 0)
		}
		s.Capped = max(s.Waiting, s.Held, s.DeadLetters) >= most
		*index[id] = s
		return nil
	}, backlogs, most, most, most, most, after(0), asJSON{endpoints})
	if err != nil {
		return nil, err
	}
	err = w.db.each(ctx, func(r *sql.Rows) error {
		var id string
		var n int
		err := r.Scan(&id, &n)
		if s := index[id]; s != nil {
			s.Sending = n
		}
		return err
	}, `SELECT endpoint, count(*) FROM forbear_deliveries WHERE `+stateLeased+` AND endpoint IN (SELECT value FROM {texts} x) GROUP BY endpoint`, asJSON{endpoints})
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Backlog = list[i].Waiting + list[i].Held + list[i].Sending
	}
	return list, w.attemptStats(ctx, endpoints, index)
}

// Unreadable counts the deliveries that wait since no process that has looked could read
// their messages, at most so many.
func (w *Webhooks) Unreadable(ctx context.Context, most int) (n int, err error) {
	err = w.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM (SELECT 1 FROM forbear_deliveries WHERE `+stateUnreadable+` LIMIT ?) x`, most)
	return n, err
}

// attemptStats sums the tallies of endpoints up.
func (w *Webhooks) attemptStats(ctx context.Context, endpoints []string, into map[string]*store.EndpointStats) error {
	now := w.db.now()
	lastHour, lastDay := store.SlotOf(now.Add(-hour)), store.SlotOf(now.Add(-day))
	type sums struct{ hour, day store.Counts }
	all := make(map[string]*sums, len(into))
	for id := range into {
		all[id] = &sums{}
	}
	err := w.db.each(ctx, func(r *sql.Rows) error {
		var id, text string
		var slot int64
		if err := r.Scan(&id, &slot, &text); err != nil {
			return err
		}
		var c store.Counts
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return fmt.Errorf("the tally of endpoint %q: %w", id, err)
		}
		all[id].day.Merge(&c)
		if slot >= lastHour {
			all[id].hour.Merge(&c)
		}
		return nil
	}, `SELECT endpoint, slot, counts FROM forbear_tallies WHERE endpoint IN (SELECT value FROM {texts} x) AND slot >= ?`, asJSON{endpoints}, lastDay)
	for id, s := range into {
		s.Hour, s.Day = all[id].hour.Stats(slotStart(lastHour)), all[id].day.Stats(slotStart(lastDay))
	}
	return err
}

// slotStart is when a slot begins.
func slotStart(slot int64) time.Time {
	return time.Unix(slot*int64(store.Slot/time.Second), 0).UTC()
}

// OutboxStats returns what waits in the outbox, of which at most so many are
// counted.
func (w *Webhooks) OutboxStats(ctx context.Context, most int) (s store.OutboxStats, err error) {
	err = w.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&s.Depth) }, `SELECT count(*) FROM (SELECT 1 FROM forbear_outbox LIMIT ?) x`, most)
	if err != nil {
		return s, err
	}
	s.Capped = s.Depth >= most
	if s.OldestAge, err = w.OutboxAge(ctx); err != nil {
		return s, err
	}
	return s, w.outboxAside(ctx, most, &s)
}
