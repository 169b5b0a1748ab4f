// Package events measures what a consumer of forbear costs beside a client of the broker
// that acknowledges what it is given: NATS JetStream, in this process.
package events

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	_ "modernc.org/sqlite"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/bench/internal/postgres"
	"github.com/forbear-go/forbear/brokers/natsconsume"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// BenchmarkEvents consumes what waits in a stream, 64 or 256 at a time: with NATS's own
// client, which waits for the server to confirm each acknowledgment as forbear does, and
// by natsconsume.Run on each store. A step is one event.
func BenchmarkEvents(b *testing.B) {
	for _, at := range []int{64, 256} {
		for _, c := range []struct {
			name string
			run  func(*testing.B, jetstream.Consumer, int, func())
		}{
			{"client", client},
			{"memory", on(func(*testing.B) idempotency.Store { return &memstore.Idempotency{} })},
			{"SQLite", on(sqlite)},
			{"PostgreSQL", on(postgreSQL)},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, at), func(b *testing.B) {
				from := filled(b)
				var left atomic.Int64
				left.Store(int64(b.N))
				c.run(b, from, at, func() { left.Add(-1) })
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
				if n := left.Load(); n != 0 {
					b.Errorf("%d events are left", n)
				}
			})
		}
	}
}

// client consumes without forbear.
func client(b *testing.B, from jetstream.Consumer, at int, done func()) {
	b.ResetTimer()
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
				if err := msg.DoubleAck(context.Background()); err != nil {
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

// on consumes by forbear, until all events have been handled.
func on(open func(*testing.B) idempotency.Store) func(*testing.B, jetstream.Consumer, int, func()) {
	return func(b *testing.B, from jetstream.Consumer, at int, done func()) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var handled atomic.Int64
		to, err := consume.New(func(context.Context, consume.Event) error { return nil }, consume.Options{
			Group: "bench", Store: open(b), DLQ: none{b},
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
		b.ResetTimer()
		if err := natsconsume.Run(ctx, from, to, natsconsume.Options{Concurrency: at}); err != nil {
			b.Fatal(err)
		}
	}
}

// none is a dead-letter queue that stays empty.
type none struct{ b *testing.B }

func (n none) Put(context.Context, deadletter.Letter) error {
	n.b.Error("a dead letter")
	return nil
}

func sqlite(b *testing.B) idempotency.Store {
	writing, reading := sqlstore.SQLiteNames(filepath.Join(b.TempDir(), "forbear.db"))
	write, err1 := sql.Open("sqlite", writing)
	read, err2 := sql.Open("sqlite", reading)
	if err := errors.Join(err1, err2); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = write.Close(), read.Close() })
	write.SetMaxOpenConns(1)
	return migrated(b, sqlstore.SQLite(write, read))
}

func postgreSQL(b *testing.B) idempotency.Store {
	dir, err := os.MkdirTemp("", "forbear-bench-") // others may not pass b.TempDir
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := postgres.Start(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Stop)
	url, err := s.Create(b.Context(), "events")
	if err != nil {
		b.Fatal(err)
	}
	pool, err := s.Open(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(16)
	return migrated(b, sqlstore.Postgres(pool))
}

func migrated(b *testing.B, db *sqlstore.DB) idempotency.Store {
	if _, err := db.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	return db.Idempotency()
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
