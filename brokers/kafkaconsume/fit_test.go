package kafkaconsume_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/forbear-go/forbear/brokers/kafkaconsume"
	"github.com/forbear-go/forbear/consume"
)

// Options under which events would be lost, or none be handled, are refused. The message
// names what to set.
func TestUnfitOptions(t *testing.T) {
	group, topics := kgo.ConsumerGroup("g"), kgo.ConsumeTopics("orders")
	for want, opts := range map[string][]kgo.Opt{
		"want kgo.ConsumerGroup":            {topics},
		"no topic: add kgo.ConsumeTopics":   {group},
		"without kgo.ShareGroup":            {kgo.ShareGroup("g"), topics},
		"kgo.ConsumePartitions":             {kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset()}})},
		"greedy autocommitting":             {group, topics, kgo.GreedyAutoCommit()},
		"disable autocommitting":            {group, topics, kgo.DisableAutoCommit()},
		"kgo.TransactionalID":               {group, topics, kgo.TransactionalID("t")},
		"kgo.KeepControlRecords":            {group, topics, kgo.KeepControlRecords()},
		"kafkaconsume: invalid empty topic": {group, kgo.ConsumeTopics("")},
		"no topic: add kgo.ConsumeTopics\nkafkaconsume: remove kgo.KeepControlRecords": {group, kgo.KeepControlRecords()},
	} {
		_, err := kafkaconsume.New(&consume.Consumer{}, kafkaconsume.Options{}, append(opts, kgo.SeedBrokers("127.0.0.1:1"))...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if _, err := kafkaconsume.New(nil, kafkaconsume.Options{}, group, topics); err == nil {
		t.Error("no consumer: it was taken")
	}
	if _, err := kafkaconsume.New(&consume.Consumer{}, kafkaconsume.Options{Window: -1}, group, topics); err == nil {
		t.Error("Window -1: it was taken")
	}
}

// A client that would not hand letters over is refused.
func TestUnfitClientOfLetters(t *testing.T) {
	for want, opts := range map[string][]kgo.Opt{
		"kgo.RequiredAcks":              {kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()},
		"kgo.TransactionalID":           {kgo.TransactionalID("t")},
		"kgo.ManualFlushing":            {kgo.ManualFlushing()},
		"kgo.ProducerLinger 30s":        {kgo.ProducerLinger(30 * time.Second)},
		"kgo.DefaultProduceTopicAlways": {kgo.DefaultProduceTopic("other"), kgo.DefaultProduceTopicAlways()},
		"":                              {kgo.DefaultProduceTopic("other"), kgo.ProducerLinger(50 * time.Millisecond), kgo.DisableIdempotentWrite()},
	} {
		client, err := kgo.NewClient(append(opts, kgo.SeedBrokers("127.0.0.1:1"))...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, err = kafkaconsume.NewLetters(client, "dead")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// An event is one when its transaction is committed, and none when it is aborted, unless
// the options say otherwise.
func TestTransactionsOfProducers(t *testing.T) {
	b := open(t)
	producer, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.DefaultProduceTopic("orders"), kgo.TransactionalID("shop"))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, producer, &kgo.Record{Key: []byte("k"), Value: []byte(map[bool]string{true: "committed", false: "aborted"}[bool(end)])})
		if err := producer.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	b.produce(t, &kgo.Record{Key: []byte("k"), Value: []byte("last")})
	for want, opts := range map[string][]kgo.Opt{
		"committed last":         nil,
		"aborted committed last": {kgo.FetchIsolationLevel(kgo.ReadUncommitted())},
	} {
		var mu sync.Mutex
		var got []string
		c, err := consume.New(func(_ context.Context, e consume.Event) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(e.Data))
			return nil
		}, options())
		if err != nil {
			t.Fatal(err)
		}
		r, err := kafkaconsume.New(c, kafkaconsume.Options{}, append(opts, kgo.SeedBrokers(b.addrs...), kgo.ConsumerGroup(strings.Fields(want)[0]), kgo.ConsumeTopics("orders"))...)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, r)
		text := func() string { mu.Lock(); defer mu.Unlock(); return strings.Join(got, " ") }
		until(t, "the last is handled", func() bool { return strings.Contains(text(), "last") })
		stop()
		if text() != want {
			t.Errorf("got %q, want %q", text(), want)
		}
	}
}
