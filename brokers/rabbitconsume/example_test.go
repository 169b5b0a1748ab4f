package rabbitconsume_test

import (
	"context"
	"log"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/brokers/rabbitconsume"
	"github.com/forbear-go/forbear/consume"
)

var (
	ctx      context.Context
	consumer *consume.Consumer
)

func ExampleRun() {
	err := rabbitconsume.Run(ctx, consumer, rabbitconsume.Options{
		Queue: "orders",
		Dial:  func() (*amqp.Connection, error) { return amqp.Dial("amqp://rabbitmq/") },
	})
	if err != nil {
		log.Fatal(err)
	}
}
