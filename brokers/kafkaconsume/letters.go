package kafkaconsume

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// Letters produces dead letters to a topic: it is a [consume.Options.Topic]. Make it
// with [NewLetters]. It is safe for concurrent use.
type Letters struct {
	client *kgo.Client
	topic  string
}

// NewLetters returns a topic of dead letters. The client is the caller's to close; one
// that would not hand letters over to all in-sync replicas of the topic is refused. A
// record has the partition key of its event.
func NewLetters(client *kgo.Client, topic string) (*Letters, error) {
	if client == nil || topic == "" {
		return nil, errors.New("kafkaconsume: want a client and a name for the topic of dead letters")
	}
	if err := fitForLetters(client, topic); err != nil {
		return nil, err
	}
	return &Letters{client, topic}, nil
}

// Put produces the event of a letter as it came, with headers that say why (see
// [consume.Binding.Original]), and returns once the brokers have it. When ctx ends
// first the record may still arrive. Of one that is too large for the topic a notice is
// produced (see [consume.Binding.Notice]).
func (l *Letters) Put(ctx context.Context, x deadletter.Letter) error {
	headers, body := consume.Kafka.Original(x)
	err := l.produce(ctx, x, headers, body)
	if errors.Is(err, kerr.MessageTooLarge) {
		err = l.produce(ctx, x, consume.Kafka.Notice(x), nil)
	}
	if err != nil {
		return fmt.Errorf("kafkaconsume: dead letter not produced to %s: %w", l.topic, err)
	}
	return nil
}

func (l *Letters) produce(ctx context.Context, x deadletter.Letter, headers []deadletter.Header, body []byte) error {
	rec := &kgo.Record{Topic: l.topic, Value: body}
	if x.PartitionKey != "" {
		rec.Key = []byte(x.PartitionKey)
	}
	for _, h := range headers {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
	}
	done := make(chan error, 1)
	l.client.Produce(ctx, rec, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // the client holds on to what is on its way
		return ctx.Err()
	}
}
