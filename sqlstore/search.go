package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

const (
	// maxLook is how many rows are looked at in one step. Most of what a list asks about
	// has no index of its own, which each message that is accepted would pay for; and type
	// and key may be encrypted. The search begins with firstLook rows. While that finds
	// less than a page of messages it goes on, in larger steps where they are quick, for
	// lookFor.
	maxLook   = 10_000
	firstLook = 1_000
	lookFor   = time.Second
	quickLook = 50 * time.Millisecond
	// clockSkew is how far the clocks of those that accept may be apart.
	clockSkew = time.Minute
)

// acceptedOf is when the message of a delivery d was accepted. It is no join: a plan
// might read all messages for one.
const acceptedOf = `(SELECT m.created FROM forbear_messages m WHERE m.seq = d.message)`

// Messages implements store.Store. Deliveries are numbered about in the order in
// which they were accepted, and looked at from the newest down.
func (w *Webhooks) Messages(ctx context.Context, f store.MessageFilter, before int64, limit int) (page store.MessagePage, err error) {
	s := search{db: w.db, MessageFilter: f, limit: limit, top: math.MaxInt64 - 1}
	if before > 0 {
		s.top = before - 1
	}
	if !f.Until.IsZero() && f.ID == "" {
		first, err := s.acceptedAt(ctx, f.Until.Add(clockSkew))
		if err != nil {
			return page, err
		}
		s.top = min(s.top, first)
	}
	if err := s.narrow(ctx); err != nil {
		return page, err
	}
	over, err := s.pages(ctx)
	if err != nil {
		return page, err
	}
	page.Messages, page.Unreadable = s.found, s.unreadable
	switch {
	case s.full():
		page.Next = s.found[limit-1].Number
	case !over:
		page.Next = s.floor + 1
	}
	if f.Bare {
		return page, nil
	}
	return page, w.latestAttempts(ctx, page.Messages)
}

// pages looks window by window until the page is full, nothing further down can be
// chosen, which it reports, or the time is over.
func (s *search) pages(ctx context.Context) (over bool, err error) {
	patience := cmp.Or(s.Patience, lookFor)
	for began, size := time.Now(), int64(firstLook); ; {
		look := time.Now()
		if s.ID == "" {
			if err := s.window(ctx, size); err != nil || s.top == 0 {
				return true, err
			}
		}
		if err := s.find(ctx); err != nil {
			return false, err
		}
		over, err = s.over(ctx)
		next := time.Since(look) // what the next step may take
		if next < min(quickLook, patience/4) {
			size, next = size*2, next*2
		}
		if err != nil || over || s.full() || time.Since(began)+next > patience {
			return over, err
		}
		s.top = s.floor
	}
}

// search looks for messages among the deliveries above floor, up to top.
type search struct {
	db *DB
	store.MessageFilter

	limit      int
	floor, top int64
	few        string // chooses the deliveries of the endpoints and states in the window, where they are few
	found      []store.MessageInfo
	unreadable int // passed over
}

// indexed are the states whose deliveries an index finds by their endpoint.
var indexed = map[string]string{
	store.StateWaiting: stateWaiting, store.StateHeld: `okey IS NOT NULL AND ` + stateUnfinished + ` AND ` + stateHeld,
	store.StateDead: stateDead, store.StateCanceled: stateCanceled,
}

// narrow chooses deliveries by their indexes, where these have all that is asked for and
// it is not too much.
func (s *search) narrow(ctx context.Context) error {
	if s.ID != "" || len(s.Endpoints) == 0 || len(s.States) == 0 {
		return nil
	}
	// The sums keep plans that do not know the numbers yet from the index of these: it
	// has all deliveries.
	var parts []string
	for _, state := range s.States {
		condition, ok := indexed[state]
		if !ok {
			return nil
		}
		parts = append(parts, `SELECT id FROM forbear_deliveries WHERE endpoint IN (SELECT value FROM {texts} x) AND id + 0 > ? AND id + 0 <= ? AND `+condition)
	}
	few, n := strings.Join(parts, ` UNION ALL `), 0
	err := s.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM (SELECT 1 FROM (`+few+`) y LIMIT ?) x`, append(s.inWindow(), maxLook+1)...)
	if n <= maxLook {
		s.few = few
	}
	return err
}

// inWindow are the arguments of few.
func (s *search) inWindow() (args []any) {
	for range s.States {
		args = append(args, asJSON{s.Endpoints}, s.floor, s.top)
	}
	return args
}

// full reports whether the page is.
func (s *search) full() bool { return len(s.found) == s.limit }

// window finds which deliveries to look at; top is 0 when there are none.
func (s *search) window(ctx context.Context, size int64) error {
	s.floor = 0
	if s.few != "" {
		// Numbers alone are sorted: with all that is read of each it takes three times as long.
		return s.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&s.floor) },
			`SELECT id - 1 FROM (`+s.few+`) x ORDER BY id DESC LIMIT 1 OFFSET ?`, append(s.inWindow(), size-1)...)
	}
	// Not the number itself: there may be gaps of any size.
	err := s.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&s.top) }, `SELECT COALESCE(max(id), 0) FROM forbear_deliveries WHERE id <= ?`, s.top)
	s.floor = max(s.top-size, 0)
	return err
}

// acceptedAt finds about the first delivery that was accepted at a time or later,
// by halves. One that is redriven after its history was swept looks older than
// it is among its neighbors: that can only make the result too high.
func (s *search) acceptedAt(ctx context.Context, t time.Time) (int64, error) {
	var low, high int64
	err := s.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&low, &high) }, `SELECT COALESCE((SELECT min(id) FROM forbear_deliveries), 0), COALESCE((SELECT max(id) FROM forbear_deliveries), 0)`)
	for err == nil && low < high {
		middle := low + (high-low)/2
		var id, created int64
		err = s.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&id, &created) },
			`SELECT d.id, `+acceptedOf+` FROM forbear_deliveries d WHERE d.id >= ? ORDER BY d.id LIMIT 1`, middle)
		if id != 0 && created < t.UnixMicro() {
			low = id + 1
		} else {
			high = middle
		}
	}
	return low, err
}

// errFull ends a query whose further rows are not wanted.
var errFull = errors.New("the page is full")

// find reads the messages that the filter chooses, a page at the most.
func (s *search) find(ctx context.Context) error {
	text := `SELECT d.id, d.message_id, d.endpoint, d.state, d.due, COALESCE(d.finished, 0), d.cancel IS NOT NULL, (SELECT m.meta FROM forbear_messages m WHERE m.seq = d.message), ` + acceptedOf + `,
		COALESCE((SELECT e.application FROM forbear_endpoints e WHERE e.id = d.endpoint), '')
		FROM forbear_deliveries d WHERE `
	var args []any
	where := func(condition string, values ...any) { text, args = text+condition, append(args, values...) }
	switch {
	case s.ID != "":
		where(`d.message_id = ? AND d.id <= ?`, s.ID, s.top)
	case s.few != "":
		where(`d.id IN (`+s.few+`)`, s.inWindow()...)
	default:
		where(`d.id > ? AND d.id <= ?`, s.floor, s.top)
	}
	if len(s.Endpoints) > 0 && s.few == "" {
		where(` AND d.endpoint IN (SELECT value FROM {texts} x)`, asJSON{s.Endpoints})
	}
	if s.Application != "" {
		where(` AND d.endpoint IN (SELECT e.id FROM forbear_endpoints e WHERE e.application = ?)`, s.Application)
	}
	if len(s.States) > 0 {
		// What is to be canceled is shown as that until it has ended, whatever its state.
		chosen := `(d.state IN ({ids}) AND (d.cancel IS NULL OR d.finished IS NOT NULL)`
		if slices.Contains(s.States, store.StateCanceling) {
			chosen += ` OR d.cancel IS NOT NULL AND d.finished IS NULL`
		}
		where(` AND `+chosen+`)`, asJSON{stateNumbers(s.States)})
	}
	if !s.Since.IsZero() {
		where(` AND `+acceptedOf+` >= ?`, microsUp(s.Since))
	}
	if !s.Until.IsZero() {
		where(` AND `+acceptedOf+` < ?`, microsUp(s.Until))
	}
	where(` ORDER BY d.id DESC`)
	// Type and key are compared in add: a message's envelope may be encrypted.
	if s.Type == "" && s.Key == "" {
		where(` LIMIT ?`, s.limit-len(s.found))
	}
	err := s.db.each(ctx, s.add, text, args...)
	if errors.Is(err, errFull) {
		err = nil
	}
	return err
}

// microsUp is the first microsecond that is not before t: databases know no shorter time.
func microsUp(t time.Time) int64 { return t.Add(time.Microsecond - 1).UnixMicro() }

// stateNumbers are the numbers of states. One without a number chooses nothing.
func stateNumbers(names []string) []int64 {
	numbers := []int64{}
	for state, name := range stateNames {
		for _, n := range names {
			if n == name {
				numbers = append(numbers, state.number())
			}
		}
	}
	return numbers
}

// add adds a message that is chosen to the page.
func (s *search) add(r *sql.Rows) error {
	var i store.MessageInfo
	var state rowState
	var due, finished, created int64
	var cancel bool
	var meta string
	if err := r.Scan(&i.Number, &i.ID, &i.Endpoint, &state, &due, &finished, &cancel, &meta, &created, &i.Application); err != nil {
		return err
	}
	v, err := s.db.openEnvelope(i.ID, meta, created)
	if err != nil {
		i.Error = fmt.Sprintf("message %q %v: %v", i.ID, webhook.ErrUnreadable, err)
	}
	i.Type, i.Key, i.Erased, i.State, i.Created, i.Finished = v.Type, v.Key, v.Erased, stateNames[state], at(created), at(finished)
	if i.Error != "" && s.Type+s.Key != "" {
		s.unreadable++
		return nil
	}
	if s.Type != "" && s.Type != i.Type || s.Key != "" && s.Key != i.Key {
		return nil
	}
	if finished == 0 {
		i.Due = at(due)
		if cancel {
			i.State = store.StateCanceling
		}
	}
	if s.found = append(s.found, i); s.full() {
		return errFull
	}
	return nil
}

// over reports whether nothing further down can be chosen.
func (s *search) over(ctx context.Context) (bool, error) {
	if s.full() || s.floor == 0 || s.few != "" || s.Since.IsZero() {
		return s.floor == 0, nil
	}
	// All of a whole window are too old, and not only one that looks older than it is.
	var latest int64
	err := s.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&latest) },
		`SELECT COALESCE(max(`+acceptedOf+`), 0) FROM forbear_deliveries d WHERE d.id > ? AND d.id <= ?`, s.floor, s.top)
	return latest < s.Since.Add(-clockSkew).UnixMicro(), err
}

// latestAttempts notes what came of the latest attempt of each message.
func (w *Webhooks) latestAttempts(ctx context.Context, list []store.MessageInfo) error {
	if len(list) == 0 {
		return nil
	}
	ids := make([]int64, len(list))
	index := make(map[int64]*store.MessageInfo, len(list))
	for i := range list {
		ids[i] = list[i].Number
		index[ids[i]] = &list[i]
	}
	return w.db.each(ctx, func(r *sql.Rows) error {
		var id int64
		var n, status int
		var errorType string
		err := r.Scan(&id, &n, &errorType, &status)
		if i := index[id]; i != nil {
			i.Attempts, i.ErrorType, i.Status = n, errorType, status
		}
		return err
	}, `SELECT a.delivery, a.n, a.error_type, a.status FROM forbear_attempts a WHERE a.delivery IN ({ids})
		AND a.claim = (SELECT max(b.claim) FROM forbear_attempts b WHERE b.delivery = a.delivery)`, asJSON{ids})
}
