package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// A day of a fleet: three dispatchers on one store, one of which is replaced every
// hour, and endpoints that go through what endpoints go through.

// habit is how an endpoint spends its day: what it responds at a time to a message's
// attempt, and what is allowed to become of its messages.
type habit struct {
	respond func(at time.Duration, luck float64) (int, error)
	ordered bool
	secret  bool
	busy    bool // messages each minute for ten hours
	retries int  // attempts of the policy; 0: eight

	letters int      // at most
	sends   float64  // a message, at most
	alerts  []string // that there are; and those that there may be
	may     []string
}

// during reports whether a time is between two hours of the day.
func during(at time.Duration, from, to float64) bool {
	return at.Hours() >= from && at.Hours() < to
}

// when responds with a status for some hours, and 200 otherwise.
func when(status int, from, to float64) func(time.Duration, float64) (int, error) {
	return func(at time.Duration, _ float64) (int, error) {
		if during(at, from, to) {
			return status, nil
		}
		return 200, nil
	}
}

// share fails a share of the attempts.
func share(p float64) func(time.Duration, float64) (int, error) {
	return func(_ time.Duration, luck float64) (int, error) {
		if luck < p {
			return 503, nil
		}
		return 200, nil
	}
}

var errNoName = &net.DNSError{Err: "no such host", Name: "nameless.example", IsNotFound: true}

func habits() map[string]*habit {
	return map[string]*habit{
		"well":    {respond: share(0), sends: 1},
		"busy":    {respond: share(0), busy: true, sends: 1},
		"partial": {respond: share(0.2), busy: true, sends: 1.3},
		"worse":   {respond: share(0.45), letters: 3, sends: 2},
		"ordered": {respond: share(0.3), ordered: true, sends: 1.6},
		"down":    {respond: when(503, 6, 8), busy: true, sends: 1.2, alerts: []string{"endpoint_slowed"}},
		"quiet":   {respond: when(500, 6, 7), sends: 2, may: []string{"endpoint_slowed"}},
		"hangs":   {respond: when(0, 5, 6), sends: 1.7, may: []string{"endpoint_slowed"}},
		"moved":   {respond: when(404, 9, 10), busy: true, letters: 75, sends: 1, alerts: []string{"endpoint_rejecting"}},
		"gone":    {respond: when(410, 16, 17), letters: 3, sends: 1, alerts: []string{"endpoint_disabled"}},
		"dead":    {respond: when(503, 0, 100), letters: 1000, retries: 5, sends: 5, alerts: []string{"endpoint_slowed", "endpoint_disabled"}},
		"keyless": {respond: share(0), secret: true, sends: 1, alerts: []string{"credential"}},
		"nameless": {busy: true, sends: 1.1, alerts: []string{"endpoint_unresolved"}, respond: func(at time.Duration, _ float64) (int, error) {
			if during(at, 12, 15) {
				return 0, errNoName
			}
			return 200, nil
		}},
	}
}

// day is the world of the test.
type day struct {
	*testing.T
	store  *calmStore
	began  time.Time
	habits map[string]*habit

	mu      sync.Mutex
	sends   map[string]int // by message
	arrived map[string]int // times that it was accepted
	last    map[string]int // accepted by an ordered endpoint, by key
	foreign int

	raised map[string]map[string]int // alerts, by endpoint and reason

	fleet []*member
	sent  map[string][]string // ids, by endpoint
}

// calmStore looks for what is lost or late no more often than such a long day needs:
// in memory that looks at everything.
type calmStore struct {
	*memstore.Store
	alerts dispatch.Alerter
	mu     sync.Mutex
	next   map[string]time.Time
}

// due reports whether a kind of look is due, once in a time.
func (s *calmStore) due(what string, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.next[what]) {
		return false
	}
	s.next[what] = time.Now().Add(every)
	return true
}

func (s *calmStore) Reclaim(ctx context.Context, limit int) (int, error) {
	if !s.due("reclaim", 5*time.Minute) {
		return 0, nil
	}
	return s.Store.Reclaim(ctx, limit)
}

func (s *calmStore) Overdue(ctx context.Context, owner string, lease, age time.Duration, lane store.Lane) ([]store.Delivery, error) {
	if !s.due(lane.Endpoint, 15*time.Minute) {
		return nil, nil
	}
	return s.Store.Overdue(ctx, owner, lease, age, lane)
}

func (s *calmStore) Abandon(ctx context.Context, limit int) (int, error) {
	if !s.due("abandon", time.Hour) {
		return 0, nil
	}
	return s.Store.Abandon(ctx, limit)
}

func (*calmStore) Sweep(context.Context, time.Duration, int) (int, error) { return 0, nil }

// member is a dispatcher of the fleet.
type member struct {
	*dispatch.Dispatcher
	stop func()
}

// join starts a dispatcher.
func (d *day) join() *member {
	d.Helper()
	disp, err := dispatch.New(dispatch.Config{
		Store: d.store, Alerts: d, Transport: d, Logger: quiet, Options: []forbear.Option{forbear.WithoutLog()}, Poll: time.Minute,
		Lookup: func(context.Context, string) error {
			_, err := d.habits["nameless"].respond(time.Since(d.began), 0)
			return err
		},
		Secrets: func(context.Context, string) (string, error) {
			if at := time.Since(d.began); during(at, 19, 21) {
				return "", errors.New("the vault is sealed")
			}
			return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", nil
		},
	})
	if err != nil {
		d.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- disp.Run(ctx) }()
	return &member{disp, func() {
		cancel()
		if err := <-done; err != nil {
			d.Error(err)
		}
	}}
}

// body is the content of a message.
func body(id string) []byte { return fmt.Appendf(nil, `{"message":%q}`, id) }

// RoundTrip is all receivers.
func (d *day) RoundTrip(r *http.Request) (*http.Response, error) {
	id, name := r.Header.Get("Webhook-Id"), strings.TrimSuffix(r.URL.Hostname(), ".example")
	got, _ := io.ReadAll(r.Body)
	test := strings.HasPrefix(id, "msg_test")
	d.mu.Lock()
	d.sends[id]++
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, id, d.sends[id], "luck")
	status, err := d.habits[name].respond(time.Since(d.began), float64(h.Sum64()%1000)/1000)
	if !test && (!bytes.Equal(got, body(id)) || !strings.HasPrefix(id, name+"-")) {
		d.foreign++
	}
	d.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case status == 0: // hangs
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	time.Sleep(20 * time.Millisecond)
	if status == 200 && !test {
		d.mu.Lock()
		d.arrived[id]++
		if d.habits[name].ordered {
			d.inOrder(id)
		}
		d.mu.Unlock()
	}
	return responds(status), nil
}

// inOrder holds an ordered endpoint's messages to their order. Each third shares a key.
func (d *day) inOrder(id string) {
	var n int
	_, _ = fmt.Sscanf(id[strings.IndexByte(id, '-'):], "-%d", &n)
	key := fmt.Sprint(n % 3)
	if n <= d.last[key] {
		d.Errorf("%s arrived after number %d of its key", id, d.last[key])
	}
	d.last[key] = n
}

// send accepts the messages of a minute, at any member.
func (d *day) send(minute int) {
	rarely, often := ringtest.Size(15, 5), ringtest.Size(1, 3)
	for name, h := range d.habits {
		n := 0
		if minute%rarely == 0 {
			n = 1
		}
		if h.busy && minute >= 5*60 && minute < 15*60 {
			n = often
		}
		for range n {
			id := fmt.Sprintf("%s-%d", name, len(d.sent[name])+1)
			m := webhook.Message{ID: id, Endpoints: []string{name}, Body: body(id)}
			if h.ordered {
				m.Key = fmt.Sprint((len(d.sent[name]) + 1) % 3)
			}
			if _, err := d.fleet[len(d.sent[name])%len(d.fleet)].Accept(d.Context(), m); err != nil {
				d.Fatal(err)
			}
			d.sent[name] = append(d.sent[name], id)
		}
	}
}

// letters returns the letters, by message.
func (d *day) letters() map[string]deadletter.Letter {
	letters := map[string]deadletter.Letter{}
	for after := ""; ; {
		list, err := d.store.List(d.Context(), queue.Filter{After: after, Limit: queue.MaxList})
		if err != nil {
			d.Fatal(err)
		}
		if len(list) == 0 {
			return letters
		}
		for _, l := range list {
			letters[l.EventID], after = l, l.ID
		}
	}
}

// PutHolds counts the alerts that the store raises with what was found of endpoints.
func (s *calmStore) PutHolds(ctx context.Context, owner string, list []store.HoldWrite) error {
	for _, w := range list {
		if err := s.counting(ctx, w.Alert, func() error { return s.Store.PutHolds(ctx, owner, []store.HoldWrite{w}) }); err != nil {
			return err
		}
	}
	return nil
}

// SetEndpointState counts those that it raises with an endpoint's state.
func (s *calmStore) SetEndpointState(ctx context.Context, id string, state webhook.EndpointState, by webhook.Party, why string, failing time.Time) error {
	return s.counting(ctx, store.DisabledAlert(id, why), func() error { return s.Store.SetEndpointState(ctx, id, state, by, why, failing) })
}

// counting counts an alert that a write raises.
func (s *calmStore) counting(ctx context.Context, a queue.Alert, write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.count(ctx, a.Reason)
	err := write()
	if s.count(ctx, a.Reason) > before {
		_ = s.alerts.Raise(ctx, a)
	}
	return err
}

// count returns how often an alert was raised for a reason.
func (s *calmStore) count(ctx context.Context, reason string) (n int) {
	list, _ := s.AlertPage(ctx, 0, 1000)
	for _, a := range list {
		if a.Reason == reason {
			n += a.Count
		}
	}
	return n
}

// Raise counts the alerts about endpoints.
func (d *day) Raise(_ context.Context, a queue.Alert) error {
	var name string
	if _, err := fmt.Sscanf(a.Detail, "endpoint %s", &name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.raised[name] == nil {
		d.raised[name] = map[string]int{}
	}
	d.raised[name][a.Reason]++
	return nil
}

// Each message of the day is at its receiver, once and as it was sent, or a dead
// letter with its reason; and no endpoint costs more sends, letters and alerts than
// what it went through explains.
func TestDayOfAFleet(t *testing.T) {
	race.TooSlow(t, "a day of three processes; TestStoreThatSharesNothing and TestRateIsOfTheFleet have fleets, too")
	synctest.Test(t, func(t *testing.T) {
		d := &day{
			T: t, store: &calmStore{Store: &memstore.Store{}, next: map[string]time.Time{}}, began: time.Now(), habits: habits(),
			sends: map[string]int{}, arrived: map[string]int{}, last: map[string]int{}, sent: map[string][]string{}, raised: map[string]map[string]int{},
		}
		d.store.alerts = d
		for range 3 {
			d.fleet = append(d.fleet, d.join())
		}
		for name, h := range d.habits {
			e := webhook.Endpoint{ID: name, URL: "https://" + name + ".example/", Ordered: h.ordered}
			if e.Policy.MaxAttempts = 8; h.retries > 0 {
				e.Policy.MaxAttempts = h.retries
			}
			if h.secret {
				e.Secrets = []string{"env:KEY"}
			}
			if _, err := d.fleet[0].PutEndpoint(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		for minute := range 24 * 60 {
			d.send(minute)
			if minute%60 == 59 { // a deployment: one goes, another comes
				i := minute / 60 % 3
				d.fleet[i].stop()
				d.fleet[i] = d.join()
				synctest.Wait()
			}
			if minute == 18*60 {
				if res, err := d.fleet[0].TestAndEnable(t.Context(), "gone", webhook.ByOperator); err != nil || !res.Enabled {
					t.Errorf("the endpoint that was gone: %+v, %v", res, err)
				}
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(26 * time.Hour)
		d.judge()
		for _, m := range d.fleet {
			m.stop()
		}
	})
}

// judge looks at what became of everything.
func (d *day) judge() {
	letters, alerts := d.letters(), d.raised
	if d.foreign > 0 {
		d.Errorf("%d attempts carried something else than was sent", d.foreign)
	}
	for _, name := range slices.Sorted(maps.Keys(d.habits)) {
		h := d.habits[name]
		arrived, sends := 0, 0
		reasons := map[string]int{}
		for _, id := range d.sent[name] {
			sends += d.sends[id]
			l, dead := letters[id]
			if dead {
				reasons[l.Reason]++
			}
			if n := d.arrived[id]; n > 0 {
				arrived++
			}
			if n := d.arrived[id]; n > 1 || (n == 1) == dead || dead && !bytes.Equal(l.Payload, body(id)) {
				d.Errorf("%s arrived %d times, and its letter is %+v", id, n, l.Reason)
			}
		}
		total := len(d.sent[name])
		per := float64(sends) / float64(total)
		d.Logf("%-9s %5d messages, %5d arrived, %.2f sends each, letters %v, alerts %v", name, total, arrived, per, reasons, alerts[name])
		if total-arrived > h.letters || per > h.sends {
			d.Errorf("%s: %d letters, want at most %d; %.2f sends a message, want at most %.2f", name, total-arrived, h.letters, per, h.sends)
		}
		for reason, n := range alerts[name] {
			// What one of three finds out the others know, and those that come during it.
			if !slices.Contains(append(h.may, h.alerts...), reason) || n > 1 {
				d.Errorf("%s: %d alerts %q, want one of %v", name, n, reason, h.alerts)
			}
		}
		for _, reason := range h.alerts {
			if alerts[name][reason] == 0 {
				d.Errorf("%s: no alert %q", name, reason)
			}
		}
	}
}
