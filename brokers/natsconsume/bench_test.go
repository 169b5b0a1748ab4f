package natsconsume_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/brokers/natsconsume"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/memstore"
)

// none is a dead-letter queue that stays empty.
type none struct{ b *testing.B }

func (n none) Put(context.Context, deadletter.Letter) error {
	n.b.Error("a dead letter")
	return nil
}

// BenchmarkEvents consumes what waits in a stream: with NATS's own client, which
// acknowledges without waiting for the server or with, and by [natsconsume.Run]
// on the store in memory, which waits. A step is one event.
func BenchmarkEvents(b *testing.B) {
	plain := func(at int, ack func(context.Context, jetstream.Msg) error) func(*testing.B, jetstream.Consumer, func()) {
		return func(b *testing.B, from jetstream.Consumer, done func()) {
			messages, err := from.Messages(jetstream.PullMaxMessages(max(2*at, 500)))
			if err != nil {
				b.Fatal(err)
			}
			defer messages.Stop()
			work := make(chan jetstream.Msg)
			var wg sync.WaitGroup
			for range at {
				wg.Go(func() {
					for msg := range work {
						if err := ack(context.Background(), msg); err != nil {
							b.Error(err)
						}
						done()
					}
				})
			}
			for range b.N {
				msg, err := messages.Next()
				if err != nil {
					b.Fatal(err)
				}
				work <- msg
			}
			close(work)
			wg.Wait()
		}
	}
	for _, c := range []struct {
		name string
		run  func(b *testing.B, from jetstream.Consumer, done func())
	}{
		{"client", plain(1, func(_ context.Context, m jetstream.Msg) error { return m.Ack() })},
		{"client that waits, 64 at once", plain(64, func(ctx context.Context, m jetstream.Msg) error { return m.DoubleAck(ctx) })},
		{"forbear, 64 at once", forbearOn(64)},
		{"forbear, 8 at once", forbearOn(8)},
	} {
		b.Run(c.name, func(b *testing.B) {
			from := filled(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			c.run(b, from, func() { left.Add(-1) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			if n := left.Load(); n != 0 {
				b.Errorf("%d events are left", n)
			}
		})
	}
}

// forbearOn runs the adapter until all events have been handled.
func forbearOn(at int) func(*testing.B, jetstream.Consumer, func()) {
	return func(b *testing.B, from jetstream.Consumer, done func()) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var handled atomic.Int64
		to, err := consume.New(func(context.Context, consume.Event) error { return nil }, consume.Options{
			Group: "bench", Store: &memstore.Idempotency{}, DLQ: none{b},
			Retryer: forbear.Must(forbear.New("bench", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())),
			Observe: func(_ consume.Event, d consume.Decision) {
				if d.Action != consume.Ack || d.Duplicate {
					b.Errorf("%v, %s", d.Action, d.Reason)
				}
				done()
				if handled.Add(1) == int64(b.N) {
					stop()
				}
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := natsconsume.Run(ctx, from, to, natsconsume.Options{Concurrency: at}); err != nil {
			b.Fatal(err)
		}
	}
}

// filled starts a server with a stream of b.N events.
func filled(b *testing.B) jetstream.Consumer {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: b.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		b.Fatal(err)
	}
	go srv.Start()
	if !srv.ReadyForConnections(30 * time.Second) {
		b.Fatal("the NATS server does not come up")
	}
	b.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	nc, err := nats.Connect("nats://" + srv.Addr().(*net.TCPAddr).String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		b.Fatal(err)
	}
	stream, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		msg := nats.NewMsg("orders.new")
		msg.Header.Set(jetstream.MsgIDHeader, fmt.Sprint(i))
		msg.Data = []byte(`{"order":4711}`)
		if _, err := js.PublishMsgAsync(msg); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	from, err := stream.CreateConsumer(b.Context(), jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	return from
}
