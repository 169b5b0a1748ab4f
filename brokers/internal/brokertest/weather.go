package brokertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// What some brokers can do beside.
type (
	// Anonymous is a broker whose messages need no id of their own.
	Anonymous interface {
		PublishAnonymous(t *testing.T, body string)
	}
	// Alarming is a broker that takes nothing for a while, and gives.
	Alarming interface {
		Alarm(t *testing.T) (over func())
	}
	// Waiting is a broker on which events wait in queues of the adapter's own. They are
	// empty when they are deleted.
	Waiting interface {
		DeleteWaiting(t *testing.T)
	}
	// Grouped is a broker that gives a key to one process at a time.
	Grouped interface {
		Grouped()
	}
	// Overtaking is a broker that brings what was on its way when a connection broke
	// behind what came later, unless it is told to give one message at a time.
	Overtaking interface {
		OneAtATime(t *testing.T)
	}
)

// In bad weather every event is done with its content, or is a letter that is whole; it is
// done again only where a process crashed, and its attempts are counted right.
func badWeather(t *testing.T, b Broker) {
	w := newWeather(t, b, ringtest.Size(100, 1000), false)
	w.begin(2)
	w.publishAnonymous()
	// A broker may not have on its disk yet what was declared in the moment before it
	// crashes, so that this comes late.
	faults := []func(){w.cut, w.crashProcess, w.freeze, w.alarm, w.restartBroker, w.restartProcess}
	rounds := ringtest.Size(1, 4)
	for range rounds {
		w.blow(faults)
	}
	w.calm()
	w.deleteWaiting()
	w.publish(w.chunk)
	w.calm()
	w.recreate()
	faults = []func(){w.cut, w.restartProcess}
	if ringtest.Nightly() {
		faults = append(faults, w.crashProcess, w.freeze, w.alarm, w.restartBroker)
	}
	for range rounds {
		w.blow(faults)
	}
	w.end()
}

// So is the order of each key, for as long as one process lives, or in the whole group.
func orderInBadWeather(t *testing.T, b Broker) {
	w := newWeather(t, b, ringtest.Size(40, 200), true)
	w.begin(1)
	w.publish(w.chunk)
	w.calm()
	if b, ok := b.(Overtaking); ok {
		b.OneAtATime(t)
	}
	faults := []func(){w.cut, w.freeze, w.restartBroker}
	if _, ok := b.(Grouped); ok {
		w.begin(1)
		faults = append(faults, w.restartProcess, w.crashProcess)
	}
	if ringtest.Nightly() {
		faults = append(faults, w.alarm)
	}
	for range ringtest.Size(1, 4) {
		w.blow(faults)
	}
	w.end()
}

// weather is what blows at one queue and its consumer.
type weather struct {
	t      *testing.T
	b      Broker
	kit    *kit // its options
	ledger *ledger
	store  idempotency.Store
	chunk  int // events between two faults

	published int
	began     time.Time
	processes int // that there were, from which they have their numbers
	running   []*process
	faults    map[string]int
}

func newWeather(t *testing.T, b Broker, chunk int, ordered bool) *weather {
	w := &weather{t: t, b: b, kit: newKit(t, b, nil), store: &memstore.Idempotency{}, chunk: chunk, began: time.Now(), faults: map[string]int{}}
	w.ledger = newLedger(w.kit.o.Retryer.Policy().MaxRetries+1, ordered)
	w.kit.o.DLQ, w.kit.o.Ordered = w.ledger, ordered
	// Half of the failures ask for a longer wait than that, see next.
	w.kit.o.InPlace, w.kit.o.InPlaceFor = 0, 150*time.Millisecond
	return w
}

func (w *weather) String() string {
	var list []string
	for name, n := range w.faults {
		list = append(list, fmt.Sprint(n, " ", name))
	}
	slices.Sort(list)
	return fmt.Sprintf("%v: %s", time.Since(w.began).Round(time.Second), strings.Join(list, ", "))
}

// blow publishes, and has each of the faults happen while that is consumed and much of it
// fails.
func (w *weather) blow(faults []func()) {
	for _, fault := range faults {
		w.publish(w.chunk)
		first := w.published
		for range w.chunk / 4 {
			w.send(w.next(transient))
		}
		w.await("they fail", func() bool { return w.ledger.ran(fmt.Sprint("w", first)) })
		fault()
		w.publish(w.chunk)
		w.await("most are done", func() bool { return w.ledger.left() < w.chunk })
	}
}

// publish sends events: of a hundred one is poison, one cannot be decoded and ten fail for a
// while.
func (w *weather) publish(n int) {
	for range n {
		x := w.next(plain)
		switch at := w.published % 100; {
		case at == 13:
			x.kind = poisonous
		case at == 57:
			x.kind, x.key = undecodable, ""
		case at == 83 && w.published%300 == 83:
			x.kind, x.floor = exhausted, longer
		case at%10 == 5:
			x.kind = transient
		}
		w.send(x)
		if w.published%100 == 99 { // the sender repeats it
			w.b.Publish(w.t, x.id, x.key, x.body())
		}
	}
}

// longer is for what a failure has to wait with the broker; see newWeather.
const longer = 200 * time.Millisecond

func (w *weather) next(k kind) *entry {
	i := w.published
	w.published++
	x := &entry{id: fmt.Sprint("w", i), key: fmt.Sprint("k", i*7%50), kind: k, fails: 1 + i/10%3}
	if i/10%2 == 0 {
		x.floor = longer
	}
	return x
}

func (w *weather) send(x *entry) {
	w.ledger.publish(x)
	if x.kind == undecodable {
		w.b.PublishRaw(w.t, x.body())
		return
	}
	w.b.Publish(w.t, x.id, x.key, x.body())
}

// await waits for something to come true, for as long as events come to their end at least
// every six minutes: RabbitMQ looks after three again for a queue that was away.
func (w *weather) await(what string, ok func() bool) {
	w.t.Helper()
	left, since := w.ledger.left(), time.Now()
	for !ok() {
		time.Sleep(time.Millisecond)
		if n := w.ledger.left(); n != left {
			left, since = n, time.Now()
		}
		if time.Since(since) > 6*time.Minute {
			w.t.Errorf("never: %s; %d are left, %d unacknowledged", what, left, w.b.Unacknowledged(w.t))
			w.ledger.close(w.t, w.String())
			w.t.FailNow()
		}
	}
}

// calm waits until everything is done, and the broker has nothing left.
func (w *weather) calm() {
	w.t.Helper()
	w.await("all are done and acknowledged", func() bool { return w.ledger.left() == 0 && w.b.Unacknowledged(w.t) == 0 })
}

// process is one run of the adapter.
type process struct {
	t      *testing.T
	number int
	store  *mortal
	cancel func()
	end    func() error // waits for the end of Run
}

// mortal is the store of a process that dies for good: nothing that it does later is stored.
type mortal struct{ crashing }

func (s *mortal) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Verdict, error) {
	if err := s.gone(); err != nil {
		return idempotency.Verdict{}, err
	}
	return s.Store.Claim(ctx, c)
}

func (s *mortal) Release(ctx context.Context, k idempotency.Token) error {
	if err := s.gone(); err != nil {
		return err
	}
	return s.Store.Release(ctx, k)
}

func (s *mortal) Hold(ctx context.Context, k idempotency.Token, why string) error {
	if err := s.gone(); err != nil {
		return err
	}
	return s.Store.Hold(ctx, k, why)
}

// begin starts processes.
func (w *weather) begin(n int) {
	w.t.Helper()
	for range n {
		w.processes++
		w.running = append(w.running, w.start(w.processes))
	}
}

func (w *weather) start(number int) *process {
	w.t.Helper()
	store := &mortal{crashing{Store: w.store}}
	o := w.kit.o
	o.Store, o.Observe = store, w.ledger.observe(number)
	o.Backlog = &idempotency.Backlog{Store: store, MaxEntries: -1} // what it kept would die with it
	c, err := consume.New(w.ledger.handler(number), o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.b.Run(ctx, c) }()
	p := &process{t: w.t, number: number, store: store, cancel: cancel, end: sync.OnceValue(func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(2 * time.Minute):
			w.t.Error("the adapter does not end")
			return nil
		}
	})}
	w.t.Cleanup(p.kill)
	return p
}

// leave takes the oldest process from those that run.
func (w *weather) leave() *process {
	p := w.running[0]
	w.running = w.running[1:]
	return p
}

// end is that of the test.
func (w *weather) end() {
	w.t.Helper()
	w.calm()
	for len(w.running) > 0 {
		w.leave().stop()
	}
	w.ledger.close(w.t, w.String())
}

func (p *process) stop() {
	p.cancel()
	if err := p.end(); err != nil {
		p.t.Errorf("the adapter ended with %v", err)
	}
}

func (p *process) kill() {
	p.cancel()
	_ = p.end()
}

// fewMoments is how long what ends by itself lasts.
func fewMoments() time.Duration { return time.Second + rand.N(time.Second) }

func (w *weather) restartProcess() {
	w.faults["clean stops"]++
	w.leave().stop()
	w.begin(1)
}

// crashProcess: its claims stay, its ends are not stored, and the broker loses it.
func (w *weather) crashProcess() {
	w.faults["crashes"]++
	p := w.leave()
	w.ledger.crash(p.number)
	p.store.set(true)
	mend := w.b.Cut(w.t)
	p.kill()
	mend()
	w.begin(1)
}

func (w *weather) cut() {
	w.faults["cuts"]++
	mend := w.b.Cut(w.t)
	time.Sleep(fewMoments() / 4)
	mend()
}

// freeze: every third time longer than a client waits.
func (w *weather) freeze() {
	w.faults["freezes"]++
	thaw := w.b.Freeze(w.t)
	time.Sleep(2 * fewMoments())
	if w.faults["freezes"]%3 == 2 {
		time.Sleep(20 * time.Second)
	}
	thaw()
}

// restartBroker: every second time it dies of what it has warned of. What it has not read
// by then, such as copies, is gone; what it has read, such as acknowledgements, is not.
func (w *weather) restartBroker() {
	w.faults["restarts of the broker"]++
	if b, ok := w.b.(Alarming); ok && w.faults["restarts of the broker"]%2 == 1 {
		w.faults["of them in an alarm"]++
		defer b.Alarm(w.t)()
		time.Sleep(fewMoments())
	}
	w.b.Restart(w.t)
}

func (w *weather) alarm() {
	if b, ok := w.b.(Alarming); ok {
		w.faults["alarms"]++
		over := b.Alarm(w.t)
		time.Sleep(fewMoments())
		over()
	}
}

func (w *weather) deleteWaiting() {
	if b, ok := w.b.(Waiting); ok {
		w.faults["deletions of the waiting queues"]++
		b.DeleteWaiting(w.t)
	}
}

// recreate deletes the queue, and makes it again under its name.
func (w *weather) recreate() {
	w.faults["deletions of the queue"]++
	w.b.Delete(w.t)
	n := len(w.running)
	for len(w.running) > 0 {
		if err := w.leave().end(); err == nil {
			w.t.Error("the adapter ended without an error when its queue was deleted")
		}
	}
	w.b.Recreate(w.t)
	w.begin(n)
	w.publishAnonymous()
}

// publishAnonymous is for the first messages of a queue: that which is made again has others
// in the same places, and none is a duplicate.
func (w *weather) publishAnonymous() {
	b, ok := w.b.(Anonymous)
	for i := 0; ok && i < 50; i++ {
		x := w.next(plain)
		x.key, x.anonymous = "", true
		w.ledger.publish(x)
		b.PublishAnonymous(w.t, x.body())
	}
}
