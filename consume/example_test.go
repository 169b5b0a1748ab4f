package consume_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// Any broker is consumed like this: make an event of its message, ask, and do
// what the decision says.
func ExampleConsumer_Consume() {
	consumer, err := consume.New(func(_ context.Context, e consume.Event) error {
		fmt.Printf("handling %s\n", e.Data)
		return nil
	}, consume.Options{
		Group:   "mail",
		Store:   &memstore.Idempotency{},
		DLQ:     &letters{},
		Retryer: forbear.Must(forbear.New("smtp", forbear.Policy{Kind: forbear.Event}, forbear.WithCallerDeadLetter())),
	})
	if err != nil {
		panic(err)
	}
	for range 2 { // the broker delivers it twice
		d := consumer.Consume(context.Background(), consume.Event{ID: "1", Source: "/shop", Data: []byte("order 17")})
		fmt.Println(d.Action, d.Reason)
	}
	// Output:
	// handling order 17
	// ack done
	// ack duplicate
}

// A dead letter runs again once its cause is gone.
func ExampleConsumer_Redrive() {
	fixed := false
	q := &letters{}
	consumer, err := consume.New(func(context.Context, consume.Event) error {
		if !fixed {
			return forbear.Terminal(errors.New("no such customer"))
		}
		fmt.Println("done")
		return nil
	}, consume.Options{
		Group:   "mail",
		Store:   &memstore.Idempotency{},
		DLQ:     q,
		Retryer: forbear.Must(forbear.New("crm", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())),
	})
	if err != nil {
		panic(err)
	}
	d := consumer.Consume(context.Background(), consume.Event{ID: "1", Source: "/shop"})
	fmt.Println(d.Action, d.Reason)
	fixed = true
	for _, l := range q.byID {
		if err := consumer.Redrive(context.Background(), l); err != nil {
			panic(err)
		}
	}
	// Output:
	// dead_lettered terminal
	// done
}

// An adapter for CloudEvents in a protocol of its own.
func ExampleBinding_Decode() {
	e, err := consume.Kafka.Decode([]deadletter.Header{
		{Name: "ce_specversion", Value: "1.0"}, {Name: "ce_id", Value: "17"}, {Name: "ce_source", Value: "/shop"}, {Name: "ce_type", Value: "order.created"},
	}, []byte("{}"))
	fmt.Println(e.Source, e.ID, e.Type, err)
	// Output: /shop 17 order.created <nil>
}
