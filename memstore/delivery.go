package memstore

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// Store is a webhook.Store and a deadletter.Store in memory: for tests and examples of what uses one, and
// for nothing that must last. It passes the suite, goes by time.Now, so that a
// synctest bubble may turn its clock, and is safe for concurrent use. The zero
// value is empty and ready.
type Store struct {
	mu        sync.Mutex
	seq       int64
	endpoints map[string]webhook.Endpoint
	all       map[int64]*delivery
	of        map[string][]*delivery // by the message's id
	lanes     map[string]*waiting    // by endpoint
	keys      map[laneKey][]*delivery

	letters []*deadletter.Letter
	jobs    []*job
	alerts  []*alert
	audits  []deadletter.Entry
}

// laneKey names the messages that keep their order.
type laneKey struct{ endpoint, key string }

const (
	stateWaiting = "waiting"
	stateSending = "sending"
	stateHeld    = "held"
	stateDone    = "delivered"
	stateDead    = "dead"
)

// delivery is one message to one endpoint.
type delivery struct {
	webhook.Delivery

	state    string
	owner    string
	lease    time.Time
	finished time.Time
	history  []webhook.Attempt
}

// waiting is the deliveries of one endpoint by when they are due. One that
// waits no more is left in, and passed over.
type waiting []*delivery

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, k int) bool { return w[i].Due.Before(w[k].Due) }
func (w waiting) Swap(i, k int)      { w[i], w[k] = w[k], w[i] }
func (w *waiting) Push(x any)        { *w = append(*w, x.(*delivery)) }

func (w *waiting) Pop() any {
	last := len(*w) - 1
	d := (*w)[last]
	*w = (*w)[:last]
	return d
}

// head returns the first that waits, or nil.
func (w *waiting) head() *delivery {
	for w.Len() > 0 {
		if d := (*w)[0]; d.state == stateWaiting {
			return d
		}
		heap.Pop(w)
	}
	return nil
}

// Accept implements [webhook.Store].
func (m *Store) Accept(_ context.Context, msgs []webhook.Message, ordered map[string]bool) ([]webhook.Accepted, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	offered := map[string][]*webhook.Message{} // by id and endpoint
	for i := range msgs {
		for _, e := range msgs[i].Endpoints {
			name := msgs[i].ID + "\n" + e
			if d := m.known(msgs[i].ID, e); d != nil {
				offered[name] = append(offered[name], &d.Message)
			}
			if offered[name] = append(offered[name], &msgs[i]); !offered[name][0].SameContent(&msgs[i]) {
				return nil, fmt.Errorf("message %q to endpoint %q: %w", msgs[i].ID, e, webhook.ErrConflict)
			}
		}
	}
	responses := make([]webhook.Accepted, len(msgs))
	for i, msg := range msgs {
		responses[i] = webhook.Accepted{ID: msg.ID, Duplicate: true}
		for _, e := range msg.Endpoints {
			if m.known(msg.ID, e) == nil {
				responses[i].Duplicate = false
				m.add(msg, e, ordered[e])
			}
		}
	}
	return responses, nil
}

// known returns the delivery of a message to an endpoint, or nil.
func (m *Store) known(id, endpoint string) *delivery {
	for _, d := range m.of[id] {
		if d.Endpoint == endpoint {
			return d
		}
	}
	return nil
}

// add adds a delivery; one that keeps its key's order is held while an earlier
// one is not finished.
func (m *Store) add(msg webhook.Message, endpoint string, ordered bool) *delivery {
	if m.all == nil {
		m.of, m.all, m.lanes, m.keys = map[string][]*delivery{}, map[int64]*delivery{}, map[string]*waiting{}, map[laneKey][]*delivery{}
	}
	m.seq++
	d := &delivery{state: stateWaiting}
	d.ID, d.Message, d.Endpoint, d.Due = m.seq, msg, endpoint, time.Now()
	if msg.NotBefore.After(d.Due) {
		d.Due = msg.NotBefore
	}
	d.Start = d.Due
	m.all[d.ID] = d
	m.of[msg.ID] = append(m.of[msg.ID], d)
	if ordered && msg.Key != "" {
		d.OrderKey = msg.Key
		k := laneKey{endpoint, msg.Key}
		if m.keys[k] = append(m.keys[k], d); len(m.keys[k]) > 1 {
			d.state = stateHeld
			return d
		}
	}
	m.wait(d, d.Due)
	return d
}

// wait makes d due at a time.
func (m *Store) wait(d *delivery, due time.Time) {
	d.state, d.Due = stateWaiting, due
	if m.lanes[d.Endpoint] == nil {
		m.lanes[d.Endpoint] = &waiting{}
	}
	heap.Push(m.lanes[d.Endpoint], d)
}

// Relay implements [webhook.Store]: there is no outbox.
func (m *Store) Relay(context.Context, int, func(*webhook.Message) (bool, error)) (webhook.Relayed, error) {
	return webhook.Relayed{}, nil
}

// Heads implements [webhook.Store].
func (m *Store) Heads(context.Context) (heads []webhook.Head, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for endpoint, w := range m.lanes {
		if d := w.head(); d != nil {
			heads = append(heads, webhook.Head{Endpoint: endpoint, In: time.Until(d.Due)})
		}
	}
	return heads, nil
}

// Turn implements [webhook.Store].
func (m *Store) Turn(ctx context.Context, t webhook.Turn) (done webhook.Turned, err error) {
	if done.OK, err = m.Finish(ctx, t.Outcomes); err != nil {
		return done, err
	}
	if done.Claimed, err = m.Claim(ctx, t.Owner, t.Lease, t.Lanes); err != nil {
		return done, err
	}
	got := map[string]int{}
	for _, d := range done.Claimed {
		got[d.Endpoint]++
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range t.Lanes {
		if w := m.lanes[l.Endpoint]; w != nil && got[l.Endpoint] < l.Max {
			if d := w.head(); d != nil {
				done.Next = append(done.Next, webhook.Head{Endpoint: l.Endpoint, In: time.Until(d.Due)})
			}
		}
	}
	return done, nil
}

// Claim is the part of a turn that takes deliveries.
func (m *Store) Claim(_ context.Context, owner string, lease time.Duration, lanes []webhook.Lane) (list []webhook.Delivery, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, l := range lanes {
		w := m.lanes[l.Endpoint]
		for range l.Max {
			if w == nil {
				break
			}
			d := w.head()
			if d == nil || d.Due.After(now) {
				break
			}
			heap.Pop(w)
			list = append(list, d.taken(owner, now.Add(lease)))
		}
	}
	return list, nil
}

func (d *delivery) taken(owner string, lease time.Time) webhook.Delivery {
	d.state, d.owner, d.lease = stateSending, owner, lease
	d.Fence++
	d.Claims++
	d.LeaseEnd = lease
	return d.Delivery
}

// Overdue implements [webhook.Store].
func (m *Store) Overdue(_ context.Context, owner string, lease, age time.Duration, lane webhook.Lane) (list []webhook.Delivery, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.sorted() {
		if len(list) < lane.Max && d.Endpoint == lane.Endpoint && d.state == stateWaiting && time.Since(d.Start) > age {
			list = append(list, d.taken(owner, time.Now().Add(lease)))
		}
	}
	return list, nil
}

// sorted returns the deliveries in the order of their making.
func (m *Store) sorted() []*delivery {
	list := make([]*delivery, 0, len(m.all))
	for _, d := range m.all {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *delivery) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Finish is the part of a turn that writes outcomes back.
func (m *Store) Finish(_ context.Context, outcomes []webhook.Outcome) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ok := make([]bool, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		d := m.all[o.ID]
		if ok[i] = d != nil && d.state == stateSending && d.Fence == o.Fence; !ok[i] {
			continue
		}
		if o.Attempt != nil {
			d.history = append(d.history, *o.Attempt)
		}
		if err := m.settle(d, o); err != nil {
			return nil, err
		}
	}
	return ok, nil
}

func (m *Store) settle(d *delivery, o *webhook.Outcome) error {
	now := time.Now()
	if o.Kind != webhook.Delivered {
		text, err := json.Marshal(o.Progress) // what a real store would keep
		if err != nil {
			return err
		}
		d.Progress = forbear.Progress{}
		if err := json.Unmarshal(text, &d.Progress); err != nil {
			return err
		}
	}
	switch o.Kind {
	case webhook.Delivered:
		d.state, d.finished = stateDone, now
		m.endRedrive(d.Letter, deadletter.OutcomeDelivered)
	case webhook.Dead:
		if o.Dead == nil {
			return fmt.Errorf("delivery %d: dead without a letter", d.ID)
		}
		d.state, d.finished = stateDead, now
		m.bury(d, *o.Dead)
	case webhook.Retried:
		m.endRedrive(d.Letter, deadletter.OutcomeFailing)
		fallthrough
	default:
		m.wait(d, now.Add(o.After))
		return nil
	}
	m.promote(d)
	return nil
}

// promote lets the next message of a finished one's key go.
func (m *Store) promote(d *delivery) {
	k := laneKey{d.Endpoint, d.OrderKey}
	queue := slices.DeleteFunc(m.keys[k], func(other *delivery) bool { return other == d })
	if len(queue) == 0 {
		delete(m.keys, k)
		return
	}
	m.keys[k] = queue
	if queue[0].state == stateHeld {
		m.wait(queue[0], queue[0].Due)
	}
}

// Reclaim implements [webhook.Store].
func (m *Store) Reclaim(_ context.Context, limit int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.sorted() {
		if n < limit && d.state == stateSending && d.lease.Before(time.Now()) {
			n++
			d.history = append(d.history, webhook.Attempt{Number: d.Progress.Attempts + 1, Claim: d.Claims, Due: d.Due, At: d.lease, ErrorType: "interrupted", Worker: d.owner})
			m.wait(d, d.Due)
		}
	}
	return n, nil
}

// Requeue implements [webhook.Store].
func (m *Store) Requeue(_ context.Context, l deadletter.Letter, ordered bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	msg := webhook.FromLetter(l)
	d := m.known(l.EventID, l.Destination)
	switch {
	case d == nil:
		m.add(msg, l.Destination, ordered).Letter = l.ID
	case !msg.SameContent(&d.Message):
		return fmt.Errorf("message %q to endpoint %q: %w", l.EventID, l.Destination, webhook.ErrConflict)
	case d.state == stateDone:
		m.endRedrive(l.ID, deadletter.OutcomeDelivered)
	case d.state != stateDead:
		d.Letter = cmp.Or(d.Letter, l.ID)
	default:
		d.Progress, d.finished, d.Letter, d.Start, d.Due = forbear.Progress{}, time.Time{}, l.ID, time.Now(), time.Now()
		m.again(d)
	}
	return nil
}

// again puts a finished delivery on its way, behind those of its key that are
// on theirs, and before those that wait for them.
func (m *Store) again(d *delivery) {
	if d.OrderKey != "" {
		k := laneKey{d.Endpoint, d.OrderKey}
		if queue := m.keys[k]; len(queue) > 0 {
			d.state = stateHeld
			m.keys[k] = slices.Insert(queue, 1, d)
			return
		}
		m.keys[k] = []*delivery{d}
	}
	m.wait(d, d.Due)
}

// Deliveries implements [webhook.Store].
func (m *Store) Deliveries(_ context.Context, message string) (list []webhook.Info, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.of[message] {
		i := webhook.Info{Message: message, Endpoint: d.Endpoint, State: d.state, Due: d.Due, Claims: d.Claims, Postponed: d.Progress.Postponed, History: slices.Clone(d.history)}
		for _, a := range d.history {
			i.Attempts = max(i.Attempts, a.Number)
		}
		list = append(list, i)
	}
	return list, nil
}

// Sweep implements [webhook.Store].
func (m *Store) Sweep(_ context.Context, age time.Duration, limit int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.sorted() {
		if n == limit || d.finished.IsZero() || time.Since(d.finished) < age {
			continue
		}
		n++
		delete(m.all, d.ID)
		rest := slices.DeleteFunc(m.of[d.Message.ID], func(other *delivery) bool { return other == d })
		if m.of[d.Message.ID] = rest; len(rest) == 0 {
			delete(m.of, d.Message.ID)
		}
	}
	return n, nil
}
