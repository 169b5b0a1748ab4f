package durable

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/webhook"
)

// flawed is how an endpoint fails: a share of its attempts, everything in bursts, or
// nothing, but a tenth slowly.
type flawed struct {
	name  string
	share float64
	burst time.Duration // at the end of each ten of them
	slow  time.Duration // takes this long for a tenth
}

// fails reports whether an attempt fails. Luck belongs to the message and the number
// of its attempt, so that two senders have the same.
func (f *flawed) fails(id string, n int, since time.Duration) bool {
	if f.burst > 0 {
		return since%(10*f.burst) >= 9*f.burst
	}
	return luck(id, n) < f.share
}

// luck draws a number in [0, 1).
func luck(id string, n int) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, id, n)
	return rand.New(rand.NewPCG(h.Sum64(), uint64(n))).Float64()
}

// crowd is the receivers behind 100 endpoints. They record contents and times.
type crowd struct {
	kinds map[string]*flawed // by endpoint
	began time.Time

	mu      sync.Mutex
	sends   map[string]int       // by message
	arrived map[string]time.Time // accepted for the first time
	foreign int                  // with another content than was sent
}

// newCrowd returns 100 endpoints: shares of 0 to 45 %, and more, and others. unit is a
// second, or less where a schedule is run faster.
func newCrowd(unit time.Duration) *crowd {
	c := &crowd{kinds: map[string]*flawed{}, sends: map[string]int{}, arrived: map[string]time.Time{}}
	add := func(n int, f flawed) {
		for range n {
			c.kinds[fmt.Sprintf("e%03d", len(c.kinds))] = &f
		}
	}
	for share := range 10 {
		add(7, flawed{name: fmt.Sprintf("%2d %%", 5*share), share: float64(share) / 20})
	}
	for _, share := range []float64{0.6, 0.8, 1} {
		add(5, flawed{name: fmt.Sprintf("%.0f %%", 100*share), share: share})
	}
	add(8, flawed{name: "2 s of every 20", burst: 2 * unit})
	add(7, flawed{name: "a slow tenth", slow: unit})
	return c
}

// content is the body of a message.
func content(id string) []byte { return fmt.Appendf(nil, `{"id":%q}`, id) }

func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	id, body := r.Header.Get("Webhook-Id"), make([]byte, 0, 64)
	buf := bytes.NewBuffer(body)
	_, _ = io.Copy(buf, r.Body)
	kind := c.kinds[strings.TrimPrefix(r.URL.Path, "/")]
	now := time.Now()
	c.mu.Lock()
	c.sends[id]++
	n := c.sends[id]
	bad := kind.fails(id, n, now.Sub(c.began))
	if !bytes.Equal(buf.Bytes(), content(id)) || !strings.HasPrefix(id, strings.TrimPrefix(r.URL.Path, "/")) {
		c.foreign++
	}
	if _, twice := c.arrived[id]; !bad && !twice {
		c.arrived[id] = now
	}
	c.mu.Unlock()
	if kind.slow > 0 && luck(id, n) < 0.1 {
		time.Sleep(kind.slow)
	}
	if bad {
		return answer(503), nil
	}
	return answer(200), nil
}

// row is what became of the messages to endpoints of one kind, or would have become
// of them with a sender that keeps to the schedule and has neither budget nor breaker.
type row struct {
	messages, sends, dead int
	late                  []time.Duration // of those that arrived
}

func (r *row) perMessage() float64 { return float64(r.sends) / float64(max(r.messages, 1)) }

// at returns the lateness that this share of the messages keep below.
func (r *row) at(share float64) time.Duration {
	if len(r.late) == 0 {
		return 0
	}
	slices.Sort(r.late)
	return r.late[int(math.Ceil(share*float64(len(r.late))))-1].Round(10 * time.Millisecond)
}

// mean returns the mean lateness of the earliest 95 %. What share arrives by a moment
// jumps where chance makes a retry more or less of a few messages; this does not.
func (r *row) mean() time.Duration {
	if len(r.late) == 0 {
		return 0
	}
	slices.Sort(r.late)
	early := r.late[:int(math.Ceil(0.95*float64(len(r.late))))]
	sum := time.Duration(0)
	for _, late := range early {
		sum += late
	}
	return (sum / time.Duration(len(early))).Round(10 * time.Millisecond)
}

// ideal adds what a message would have come to.
func (r *row) ideal(f *flawed, id string, since time.Duration, steps []time.Duration) {
	r.messages++
	t, low := since, time.Duration(0)
	for n, high := range steps {
		t += low + time.Duration(rand.Float64()*float64(high-low))
		r.sends++
		if !f.fails(id, n+1, t) {
			r.late = append(r.late, t-since)
			return
		}
		low = high
	}
	r.dead++
}

// deliver sends messages, one to each endpoint at a time, waits, and returns what
// became of them by kind, and what would have ideally.
func (c *crowd) deliver(t *testing.T, s *Service, messages int, every time.Duration, steps []time.Duration, wait func()) (got, ideal map[string]*row) {
	ids := slices.Sorted(func(yield func(string) bool) {
		for id := range c.kinds {
			if !yield(id) {
				return
			}
		}
	})
	for _, id := range ids {
		put(t, s, webhook.Endpoint{ID: id, URL: "https://example.com/" + id, Policy: forbear.Policy{Backoff: forbear.Backoff{Schedule: steps}}})
	}
	c.began = time.Now()
	sent := map[string]time.Time{}
	for n := range messages {
		var batch []webhook.Message
		for _, e := range ids {
			id := fmt.Sprintf("%s-%d", e, n)
			batch = append(batch, webhook.Message{ID: id, Endpoints: []string{e}, Body: content(id)})
			sent[id] = time.Now()
		}
		if _, err := s.Dispatcher.Accept(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(every)
	}
	wait()
	letters := lettersOf(t, s)
	got, ideal = map[string]*row{}, map[string]*row{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.foreign > 0 {
		t.Errorf("%d attempts carried something else than was sent", c.foreign)
	}
	for id, at := range sent {
		kind := c.kinds[id[:4]]
		if got[kind.name] == nil {
			got[kind.name], ideal[kind.name] = &row{}, &row{}
		}
		ideal[kind.name].ideal(kind, id, at.Sub(c.began), steps)
		r := got[kind.name]
		r.messages++
		r.sends += c.sends[id]
		arrived, ok := c.arrived[id]
		if ok {
			r.late = append(r.late, arrived.Sub(at))
		}
		if letters[id] {
			r.dead++
		}
		if ok && letters[id] {
			t.Errorf("%s arrived and is a dead letter", id)
		}
		if !ok && !letters[id] {
			c.waits(t, s, id)
		}
	}
	return got, ideal
}

// lettersOf returns the messages that are dead letters.
func lettersOf(t *testing.T, s *Service) map[string]bool {
	letters := map[string]bool{}
	for after := ""; ; {
		list, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{After: after, Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return letters
		}
		for _, l := range list {
			letters[l.EventID] = true
			after = l.ID
		}
	}
}

// waits holds a message that neither arrived nor was a letter to being in the store,
// or to having become a letter since the letters were listed.
func (c *crowd) waits(t *testing.T, s *Service, id string) {
	list, err := s.Dispatcher.Deliveries(t.Context(), id)
	if err == nil && len(list) == 1 {
		switch list[0].State {
		case "waiting", "sending":
			return
		case "dead":
			letters, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{EventID: id})
			if err == nil && len(letters) == 1 {
				return
			}
		}
	}
	t.Errorf("%s is lost: %+v, %v", id, list, err)
}

// table prints the rows side by side.
func table(t *testing.T, got, ideal map[string]*row) {
	var b strings.Builder
	b.WriteString("| fails | messages | arrived (ideal) | letters (ideal) | sends a message (ideal) | half arrive within (ideal) | 95 % within (ideal) | 99 % within (ideal) |\n|---|---|---|---|---|---|---|---|\n")
	names := make([]string, 0, len(got))
	for name := range got {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, name := range names {
		g, i := got[name], ideal[name]
		fmt.Fprintf(&b, "| %s | %d | %d (%d) | %d (%d) | %.2f (%.2f) | %v (%v) | %v (%v) | %v (%v) |\n", strings.TrimSpace(name), g.messages, len(g.late), len(i.late), g.dead, i.dead,
			g.perMessage(), i.perMessage(), g.at(0.5), i.at(0.5), g.at(0.95), i.at(0.95), g.at(0.99), i.at(0.99))
	}
	t.Log("\n" + b.String())
}

// compare holds what became of the messages to the ideal: where most attempts
// succeed it is the same, but for moments.
func compare(t *testing.T, c *crowd, got, ideal map[string]*row, slack time.Duration) {
	seen := map[string]bool{}
	for _, kind := range c.kinds {
		g, i := got[kind.name], ideal[kind.name]
		if kind.share > mostly || seen[kind.name] {
			continue
		}
		seen[kind.name] = true
		if kind.burst == 0 && (len(g.late) != len(i.late) || g.dead != i.dead || g.sends != i.sends) {
			t.Errorf("%s: %d arrived, %d letters, %d sends; ideal %d, %d, %d", kind.name, len(g.late), g.dead, g.sends, len(i.late), i.dead, i.sends)
		}
		if len(g.late)+g.dead != g.messages {
			t.Errorf("%s: %d arrived and %d are dead letters of %d", kind.name, len(g.late), g.dead, g.messages)
		}
		if late, want := g.mean(), i.mean()*3/2+slack; late > want {
			t.Errorf("%s: 95 %% arrived after %v on average, ideal %v", kind.name, late, i.mean())
		}
	}
}

// standardSteps are the first five of R-3's table.
var standardSteps = []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute}

// mostly is the largest share of failures whose messages are waited for in the suite.
const mostly = 0.4

// A hundred endpoints that fail by different shares, on SQLite and in virtual time:
// each message arrives with its content or is a dead letter, and where most attempts
// succeed it does as if there were no budget and no breaker.
func TestPartialFailuresOnSQLite(t *testing.T) {
	race.TooSlow(t, "TestPartialFailuresOnPostgreSQL is the same on another store")
	virtually(t, 20, 20*time.Minute)
}

// The same on PostgreSQL, whose clock is its own, with a schedule that is 25 times as
// fast.
func TestPartialFailuresOnPostgreSQL(t *testing.T) {
	fast := make([]time.Duration, len(standardSteps))
	for i, step := range standardSteps {
		fast[i] = step / 25
	}
	really(t, pgtest.Database(t), fast, 20, 50*time.Millisecond, 5*time.Minute)
}

// TestSoakPartialFailures is both in full: SQLite for a day, in which everything
// ends, and PostgreSQL with the standard's schedule in real time.
func TestSoakPartialFailures(t *testing.T) {
	ringtest.OnlyNightly(t, "takes twenty minutes")
	t.Run("SQLite", func(t *testing.T) {
		for name, r := range virtually(t, 100, 25*time.Hour) {
			if len(r.late)+r.dead != r.messages {
				t.Errorf("%s: %d arrived and %d are dead letters of %d, after a day", name, len(r.late), r.dead, r.messages)
			}
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		really(t, pgtest.Database(t), standardSteps, 300, time.Second, 10*time.Minute)
	})
}

// virtually delivers on SQLite in virtual time, in which it waits that long.
func virtually(t *testing.T, messages int, wait time.Duration) (got map[string]*row) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(time.Second)
		s, stop := start(t, Options{Transport: c, Poll: time.Minute, Observers: []forbear.Option{forbear.WithoutLog()}})
		var ideal map[string]*row
		got, ideal = c.deliver(t, s, messages, 2*time.Second, standardSteps, func() { time.Sleep(wait) })
		table(t, got, ideal)
		compare(t, c, got, ideal, 200*time.Millisecond)
		stop()
	})
	return got
}

// really delivers in real time, until all has ended that goes to endpoints which
// mostly succeed. Lateness is shown, and not judged: it is the machine's, too.
func really(t *testing.T, place string, steps []time.Duration, messages int, every, limit time.Duration) {
	c := newCrowd(steps[1])
	s, stop := start(t, Options{Database: place, Transport: c, Observers: []forbear.Option{forbear.WithoutLog()}})
	defer stop()
	got, ideal := c.deliver(t, s, messages, every, steps, func() {
		for end := time.Now().Add(limit); time.Now().Before(end) && !c.done(t, s, messages); {
			time.Sleep(100 * time.Millisecond)
		}
	})
	table(t, got, ideal)
	compare(t, c, got, ideal, time.Hour)
}

// done reports whether all has ended that goes to endpoints which mostly succeed.
func (c *crowd) done(t *testing.T, s *Service, messages int) bool {
	c.mu.Lock()
	var dead []string
	for e, kind := range c.kinds {
		for n := range messages {
			id := fmt.Sprintf("%s-%d", e, n)
			switch _, arrived := c.arrived[id]; {
			case arrived || kind.share > mostly:
			case c.sends[id] < len(standardSteps):
				c.mu.Unlock()
				return false
			default:
				dead = append(dead, id)
			}
		}
	}
	c.mu.Unlock()
	letters := lettersOf(t, s)
	return !slices.ContainsFunc(dead, func(id string) bool { return !letters[id] })
}
