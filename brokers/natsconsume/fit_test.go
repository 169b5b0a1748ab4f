package natsconsume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/forbear-go/forbear/brokers/natsconsume"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// A consumer under whose settings events would be lost, or none be handled, is refused.
// The message names what to set.
func TestUnfitConsumers(t *testing.T) {
	b := open(t)
	explicit := jetstream.AckExplicitPolicy
	for want, config := range map[string]jetstream.ConsumerConfig{
		"MaxDeliver 5 would drop events after that many deliveries: want -1": {Durable: "m", AckPolicy: explicit, MaxDeliver: 5},

		"want AckExplicitPolicy":                                 {Durable: "a", AckPolicy: jetstream.AckNonePolicy},
		"is AckAll: want AckExplicitPolicy":                      {Durable: "A", AckPolicy: jetstream.AckAllPolicy},
		"ephemeral":                                              {AckPolicy: explicit},
		"InactiveThreshold 1h0m0s":                               {Durable: "i", AckPolicy: explicit, InactiveThreshold: time.Hour},
		"MemoryStorage":                                          {Durable: "s", AckPolicy: explicit, MemoryStorage: true},
		"HeadersOnly":                                            {Durable: "h", AckPolicy: explicit, HeadersOnly: true},
		"want PriorityPolicyNone":                                {Durable: "p", AckPolicy: explicit, PriorityPolicy: jetstream.PriorityPolicyOverflow, PriorityGroups: []string{"g"}},
		"MaxWaiting 1":                                           {Durable: "w", AckPolicy: explicit, MaxWaiting: 1},
		"is 1ns, and would redeliver events":                     {Durable: "k", AckPolicy: explicit, AckWait: 1},
		"is 500ms, and would redeliver events":                   {Durable: "K", AckPolicy: explicit, BackOff: []time.Duration{time.Minute, time.Second / 2}},
		"MaxRequestExpires 500ms: want 0":                        {Durable: "e", AckPolicy: explicit, MaxRequestExpires: time.Second / 2},
		"MaxRequestMaxBytes 1000 refuses":                        {Durable: "b", AckPolicy: explicit, MaxRequestMaxBytes: 1000},
		"HeadersOnly omits the bodies: want false\nMaxWaiting 1": {Durable: "2", AckPolicy: explicit, HeadersOnly: true, MaxWaiting: 1},
	} {
		cons, err := b.js.CreateConsumer(t.Context(), "ORDERS", config)
		if err != nil {
			t.Fatal(err)
		}
		if err := natsconsume.Run(t.Context(), cons, &consume.Consumer{}, natsconsume.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	ordered, err := b.js.OrderedConsumer(t.Context(), "ORDERS", jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func() error{
		"ordered":     func() error { return natsconsume.Run(t.Context(), ordered, &consume.Consumer{}, natsconsume.Options{}) },
		"no consumer": func() error { return natsconsume.Run(t.Context(), b.cons, nil, natsconsume.Options{}) },
		"no source":   func() error { return natsconsume.Run(t.Context(), nil, &consume.Consumer{}, natsconsume.Options{}) },
		"Concurrency": func() error {
			return natsconsume.Run(t.Context(), b.cons, &consume.Consumer{}, natsconsume.Options{Concurrency: -1})
		},
	} {
		if err := run(); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

// What is a choice is taken: it slows down, or begins elsewhere, and loses nothing here.
func TestFitConsumers(t *testing.T) {
	b := open(t)
	for range 5 {
		b.publish(t, &nats.Msg{Subject: "orders.x", Header: nats.Header{}})
	}
	soon := time.Now().Add(2 * time.Second)
	for name, config := range map[string]jetstream.ConsumerConfig{
		"paused":     {PauseUntil: &soon},
		"replayed":   {ReplayPolicy: jetstream.ReplayOriginalPolicy},
		"one":        {MaxAckPending: 1},
		"backoff":    {BackOff: []time.Duration{time.Minute, 2 * time.Second}},
		"filtered":   {FilterSubjects: []string{"orders.x", "orders.y"}},
		"filter":     {FilterSubject: "orders.x"},
		"from_start": {DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: 1},
	} {
		config.Durable, config.AckPolicy = name, jetstream.AckExplicitPolicy
		cons, err := b.js.CreateConsumer(t.Context(), "ORDERS", config)
		if err != nil {
			t.Fatal(name, err)
		}
		handled, stop := started(t, cons, &memstore.Idempotency{})
		comes(t, handled, 5)
		if err := stop(); err != nil {
			t.Error(name, err)
		}
	}
}
