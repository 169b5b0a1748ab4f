package kafkaconsume_test

import (
	"context"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/forbear-go/forbear/brokers/kafkaconsume"
	"github.com/forbear-go/forbear/consume"
)

var (
	ctx      context.Context
	consumer *consume.Consumer
)

func ExampleNew() {
	runner, err := kafkaconsume.New(
		consumer, kafkaconsume.Options{},
		kgo.SeedBrokers("kafka:9092"),
		kgo.ConsumerGroup("bookkeeping"),
		kgo.ConsumeTopics("orders"),
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := runner.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
