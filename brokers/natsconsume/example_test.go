package natsconsume_test

import (
	"context"
	"log"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/forbear-go/forbear/brokers/natsconsume"
	"github.com/forbear-go/forbear/consume"
)

var (
	ctx      context.Context
	js       jetstream.JetStream
	consumer *consume.Consumer
)

func ExampleRun() {
	from, err := js.CreateOrUpdateConsumer(ctx, "ORDERS", jetstream.ConsumerConfig{
		Durable:       "bookkeeping",
		AckPolicy:     jetstream.AckExplicitPolicy,
		MaxAckPending: 100_000, // events that wait count
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := natsconsume.Run(ctx, from, consumer, natsconsume.Options{}); err != nil {
		log.Fatal(err)
	}
}

// Publish dead letters to a subject as well: topic is the Topic of consume.Options.
func ExampleNewLetters() {
	topic, err := natsconsume.NewLetters(js, "dead.orders")
	if err != nil {
		log.Fatal(err)
	}
	_ = consume.Options{Topic: topic} // and all that a consumer needs
}
