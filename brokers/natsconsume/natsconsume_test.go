package natsconsume_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/brokers/internal/brokertest"
	"github.com/forbear-go/forbear/brokers/natsconsume"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// broker is a NATS server with JetStream in this process.
type broker struct {
	srv  *server.Server
	opts server.Options
	js   jetstream.JetStream
	cons jetstream.Consumer

	relay *porttest.Relay // between Run and the server
}

func open(t *testing.T) *broker {
	t.Helper()
	b := &broker{opts: server.Options{Host: "127.0.0.1", Port: porttest.Free(t), JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}}
	b.boot(t)
	t.Cleanup(func() { b.halt() })
	b.relay = porttest.NewRelay(t, b.srv.Addr().String())
	nc, err := b.connect(b.srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if b.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	b.Recreate(t)
	return b
}

func TestStandsStill(t *testing.T) {
	b := open(t)
	c := b.cons.CachedInfo().Config
	c.MaxAckPending = 4
	if _, err := b.js.UpdateConsumer(t.Context(), "ORDERS", c); err != nil {
		t.Fatal(err)
	}
	brokertest.StandsStill(t, b, 4)
}

func (b *broker) connect(url string) (*nats.Conn, error) {
	return nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
}

func (b *broker) boot(t *testing.T) {
	t.Helper()
	opts := b.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		t.Fatal(err)
	}
	go srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not come up")
	}
	b.srv = srv
}

func (b *broker) halt() {
	b.srv.Shutdown()
	b.srv.WaitForShutdown()
}

// Run has a connection of its own, as a process does.
func (b *broker) Run(ctx context.Context, to *consume.Consumer) error {
	nc, err := b.connect(b.relay.URL(b.srv.ClientURL()))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	cons, err := js.Consumer(ctx, "ORDERS", "c")
	if err != nil {
		return err
	}
	return natsconsume.Run(ctx, cons, to, natsconsume.Options{Concurrency: b.Concurrency()})
}

func (b *broker) publish(t *testing.T, msg *nats.Msg) {
	t.Helper()
	var err error
	for range 100 { // the server may be coming up
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = b.js.PublishMsg(ctx, msg)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal(err)
}

func (b *broker) Publish(t *testing.T, id, key, body string) {
	msg := nats.NewMsg("orders.created")
	for name, v := range map[string]string{"ce-specversion": "1.0", "ce-id": id, "ce-source": "/conform", "ce-type": "test", "ce-partitionkey": key, "x-a": "1", "traceparent": brokertest.Traceparent} {
		msg.Header[name] = []string{v}
	}
	msg.Data = []byte(body)
	b.publish(t, msg)
}

func (b *broker) PublishRaw(t *testing.T, body string) {
	msg := nats.NewMsg("orders.created")
	msg.Header.Set("Content-Type", "application/cloudevents+json")
	msg.Data = []byte(body)
	b.publish(t, msg)
}

func (b *broker) Unacknowledged(t *testing.T) int {
	t.Helper()
	info, err := b.cons.Info(context.Background())
	if err != nil {
		t.Log(err)
		return -1
	}
	return int(info.NumPending) + info.NumAckPending
}

func (b *broker) Restart(t *testing.T) {
	b.halt()
	b.boot(t)
}

func (b *broker) Concurrency() int { return 4 }

func (b *broker) Delete(t *testing.T) {
	if err := b.js.DeleteStream(t.Context(), "ORDERS"); err != nil {
		t.Fatal(err)
	}
}

func (b *broker) Recreate(t *testing.T) {
	t.Helper()
	var stream jetstream.Stream
	var err error
	for range 600 { // the files of a former one may not be gone yet
		if stream, err = b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err == nil {
		b.cons, err = stream.CreateConsumer(t.Context(), config)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var config = jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second}

func (b *broker) OneAtATime(t *testing.T) {
	one := config
	one.MaxAckPending = 1
	var err error
	if b.cons, err = b.js.UpdateConsumer(t.Context(), "ORDERS", one); err != nil {
		t.Fatal(err)
	}
}

func (b *broker) Cut(*testing.T) (mend func()) { return b.relay.Away() }

func (b *broker) Freeze(t *testing.T) (thaw func()) {
	thaw = b.relay.Freeze()
	t.Cleanup(thaw)
	return thaw
}

// PublishAnonymous does not try again: the server would have two then.
func (b *broker) PublishAnonymous(t *testing.T, body string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := b.js.Publish(ctx, "orders.created", []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	brokertest.Run(t, func(t *testing.T) brokertest.Broker { return open(t) })
}

// started runs an adapter whose handler counts, with a store that lasts longer than it.
func started(t *testing.T, cons jetstream.Consumer, store idempotency.Store) (handled *atomic.Int32, stop func() error) {
	t.Helper()
	r, err := forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		t.Fatal(err)
	}
	handled = &atomic.Int32{}
	to, err := consume.New(func(context.Context, consume.Event) error { handled.Add(1); return nil }, consume.Options{Group: "g", Store: store, DLQ: &memstore.Store{}, Retryer: r})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- natsconsume.Run(ctx, cons, to, natsconsume.Options{}) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return handled, stop
}

// comes waits for a count, for a minute or more.
func comes(t *testing.T, n *atomic.Int32, want int32) {
	t.Helper()
	for range 3000 {
		if n.Load() >= want {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%d events are handled, want %d", n.Load(), want)
}

// The limits of a consumer are kept to.
func TestLimitsOfAConsumer(t *testing.T) {
	b := open(t)
	cons, err := b.js.CreateConsumer(t.Context(), "ORDERS", jetstream.ConsumerConfig{Durable: "l", AckPolicy: jetstream.AckExplicitPolicy, MaxRequestBatch: 3, MaxRequestExpires: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	handled, stop := started(t, cons, &memstore.Idempotency{})
	for range 20 {
		b.publish(t, &nats.Msg{Subject: "orders.x", Header: nats.Header{}})
	}
	comes(t, handled, 20)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A stream that is made again under its name counts from 1 again: its events are not those
// of before.
func TestStreamMadeAgain(t *testing.T) {
	b, store := open(t), &memstore.Idempotency{}
	for round := range 2 {
		if round > 0 {
			b.Recreate(t)
		}
		handled, stop := started(t, b.cons, store)
		for range 3 {
			b.publish(t, &nats.Msg{Subject: "orders.x", Header: nats.Header{}})
		}
		comes(t, handled, 3)
		if err := stop(); err != nil {
			t.Error(err)
		}
		b.Delete(t)
	}
}
