package kafkaconsume_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/brokers/internal/brokertest"
	"github.com/forbear-go/forbear/brokers/kafkaconsume"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// broker is kfake, franz-go's fake of a Kafka cluster: it speaks the protocol
// and is not Kafka. It keeps what it is given on disk.
type broker struct {
	cluster  *kfake.Cluster
	opts     []kfake.Opt
	producer *kgo.Client
	addrs    []string
	relay    *porttest.Relay // between a runner and the cluster
}

const partitions = 2

func open(t *testing.T) *broker {
	t.Helper()
	b := &broker{opts: []kfake.Opt{
		kfake.NumBrokers(1), kfake.Ports(porttest.Free(t)), kfake.SeedTopics(partitions, "orders"), kfake.DataDir(t.TempDir()), kfake.SyncWrites(),
		kfake.GroupMinSessionTimeout(time.Second), kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}),
	}}
	b.boot(t)
	t.Cleanup(func() { b.cluster.Close() })
	b.addrs = b.cluster.ListenAddrs()
	b.relay = porttest.NewRelay(t, b.addrs[0])
	var err error
	if b.producer, err = kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.DefaultProduceTopic("orders")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.producer.Close)
	return b
}

func (b *broker) boot(t *testing.T) {
	t.Helper()
	var err error
	if b.cluster, err = kfake.NewCluster(b.opts...); err != nil {
		t.Fatal(err)
	}
}

func (b *broker) runner(to *consume.Consumer, o kafkaconsume.Options) (*kafkaconsume.Runner, error) {
	return kafkaconsume.New(to, o, kgo.SeedBrokers(b.addrs...), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(3*time.Second), kgo.RebalanceTimeout(3*time.Second), kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, b.relay.Address())
		}))
}

func (b *broker) Run(ctx context.Context, to *consume.Consumer) error {
	r, err := b.runner(to, kafkaconsume.Options{})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// small is a broker whose runner has four places in a partition.
type small struct{ *broker }

func (b small) Run(ctx context.Context, to *consume.Consumer) error {
	r, err := b.runner(to, kafkaconsume.Options{Window: 4})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func TestStandsStill(t *testing.T) { brokertest.StandsStill(t, small{open(t)}, 4) }

func (b *broker) produce(t *testing.T, rec *kgo.Record) {
	t.Helper()
	produce(t, b.producer, rec)
}

func produce(t *testing.T, by *kgo.Client, rec *kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := by.ProduceSync(ctx, rec).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func (b *broker) Publish(t *testing.T, id, key, body string) {
	rec := &kgo.Record{Key: []byte(key), Value: []byte(body)}
	for _, h := range [][2]string{{"ce_specversion", "1.0"}, {"ce_id", id}, {"ce_source", "/conform"}, {"ce_type", "test"}, {"x-a", "1"}, {"traceparent", brokertest.Traceparent}} {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	b.produce(t, rec)
}

func (b *broker) PublishRaw(t *testing.T, body string) {
	b.produce(t, &kgo.Record{Value: []byte(body), Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte("application/cloudevents+json")}}})
}

func (b *broker) Unacknowledged(*testing.T) int {
	var end, committed int64
	for _, p := range b.cluster.PartitionInfos("orders") {
		end += p.HighWatermark
	}
	if g := b.cluster.GroupInfo("g"); g != nil {
		for _, c := range g.Commits["orders"] {
			committed += c.Offset
		}
	}
	return int(end - committed)
}

func (b *broker) Restart(t *testing.T) {
	b.cluster.Close()
	b.boot(t)
}

func (b *broker) Concurrency() int { return partitions }

func (b *broker) Delete(t *testing.T) {
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = new("orders")
	req := kmsg.NewDeleteTopicsRequest()
	req.TopicNames, req.Topics = []string{"orders"}, append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), b.producer)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b *broker) Recreate(t *testing.T) {
	if err := b.cluster.CreateTopic("orders", partitions, nil); err != nil {
		t.Fatal(err)
	}
	b.producer.PurgeTopicsFromProducing("orders") // it knows the former one
}

func (b *broker) Cut(*testing.T) (mend func()) { return b.relay.Away() }

func (b *broker) Freeze(t *testing.T) (thaw func()) {
	thaw = b.relay.Freeze()
	t.Cleanup(thaw)
	return thaw
}

func (b *broker) Grouped() {}

func (b *broker) PublishAnonymous(t *testing.T, body string) {
	b.produce(t, &kgo.Record{Value: []byte(body)})
}

func TestConformanceOnTheFake(t *testing.T) {
	brokertest.Run(t, func(t *testing.T) brokertest.Broker { return open(t) })
}

type letters struct{ n atomic.Int64 }

func (l *letters) Put(context.Context, deadletter.Letter) error {
	l.n.Add(1)
	return nil
}

func options() consume.Options {
	return consume.Options{
		Group: "g", Store: &memstore.Idempotency{}, DLQ: &letters{}, InPlace: -1,
		Retryer: forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())),
	}
}

func start(t *testing.T, r *kafkaconsume.Runner) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

// A record that is set aside stops the partition only when the window behind it
// is full, and the partition goes on afterwards.
func TestWindowPausesThePartition(t *testing.T) {
	b := open(t)
	var done, free atomic.Int64
	c, err := consume.New(func(_ context.Context, e consume.Event) error {
		if e.ID == "held" && free.Load() == 0 {
			return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: 3 * time.Second})
		}
		done.Add(1)
		return nil
	}, options())
	if err != nil {
		t.Fatal(err)
	}
	b.Publish(t, "held", "k", "")
	r, err := b.runner(c, kafkaconsume.Options{Window: 10})
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, r)
	defer stop()
	until(t, "the record is set aside", func() bool { return b.Unacknowledged(t) == 1 })
	for i := range 40 {
		b.Publish(t, string(rune('A'+i)), "k", "")
		time.Sleep(10 * time.Millisecond)
	}
	until(t, "the window is full", func() bool { return done.Load() >= 9 })
	time.Sleep(500 * time.Millisecond)
	if n := done.Load(); n >= 40 {
		t.Errorf("%d records were handled past the window", n)
	}
	free.Store(1)
	until(t, "the partition goes on", func() bool { return done.Load() == 41 && b.Unacknowledged(t) == 0 })
}

// Partitions that move to another member take nothing with them twice and leave
// nothing behind.
func TestRebalance(t *testing.T) {
	b := open(t)
	o := options()
	var done atomic.Int64
	handler := func(context.Context, consume.Event) error {
		time.Sleep(2 * time.Millisecond)
		done.Add(1)
		return nil
	}
	var stops []func()
	for i := range 2 {
		c, err := consume.New(handler, o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := b.runner(c, kafkaconsume.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, start(t, r))
		for j := range 100 {
			b.Publish(t, string(rune(0x100+i*100+j)), string(rune('a'+j%7)), "")
		}
	}
	until(t, "half are done", func() bool { return done.Load() >= 100 })
	stops[0]()
	until(t, "all are done", func() bool { return done.Load() == 200 && b.Unacknowledged(t) == 0 })
	stops[1]()
	if n := done.Load(); n != 200 {
		t.Errorf("%d runs of 200 events", n)
	}
}
