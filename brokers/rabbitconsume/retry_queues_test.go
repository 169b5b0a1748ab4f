package rabbitconsume_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/brokers/rabbitconsume"
)

// A server that dies while messages come back from their wait has each of them
// afterwards, with its content: in one of the two queues, or in both.
func TestServerDiesWhileMessagesComeBack(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	q := open(t, s, "orders")
	put, err := rabbitconsume.Waiting(t.Context(), s.dial, q.name)
	if err != nil {
		t.Fatal(err)
	}
	const all = 2000
	var putting sync.WaitGroup
	for i := range 20 {
		putting.Go(func() {
			for j := i; j < all; j += 20 {
				if err := put(t.Context(), amqp.Delivery{MessageId: fmt.Sprint("m", j), Body: fmt.Append(nil, "body of ", j)}, time.Second); err != nil {
					t.Error(err)
				}
			}
		})
	}
	putting.Wait()
	back := func() int {
		state, err := q.channel(t).QueueDeclarePassive(q.name, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		return state.Messages
	}
	for late := time.Now().Add(time.Minute); back() < all/4; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d of %d messages have come back within a minute", back(), all)
		}
	}
	s.kill()
	s.boot(t)
	messages, err := q.channel(t).Consume(q.name, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for missed := false; len(seen) < all && !missed; {
		select {
		case m := <-messages:
			seen[m.MessageId] = string(m.Body)
		case <-time.After(20 * time.Second): // none has so long to wait
			missed = true
		}
	}
	lost := 0
	for i := range all {
		if seen[fmt.Sprint("m", i)] != fmt.Sprint("body of ", i) {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d messages are lost", lost, all)
	}
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{"3.9.29": true, "2.8.1": true, "3.10.0": false, "3.13.7": false, "4.2.1": false, "odd": false} {
		if got := rabbitconsume.TooOld(amqp.Table{"product": "RabbitMQ", "version": version}); got != want {
			t.Errorf("%s: got %v", version, got)
		}
	}
	if rabbitconsume.TooOld(amqp.Table{"product": "LavinMQ", "version": "2.4.0"}) {
		t.Error("of another product no version is known")
	}
}
