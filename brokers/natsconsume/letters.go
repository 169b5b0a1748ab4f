package natsconsume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// Letters publishes dead letters to a subject of a stream: it is a
// [consume.Options.Topic]. Make it with [NewLetters]. It is safe for concurrent use.
type Letters struct {
	js      jetstream.JetStream
	subject string
}

// NewLetters returns a topic of dead letters. A stream has to take the subject; what
// that keeps is as durable as its storage and its replicas. The id of each message,
// Nats-Msg-Id, makes the stream drop a repeated one within its duplicate window. Headers
// that an event had for its stream, Nats-..., are x-forbear-Nats-... there.
func NewLetters(js jetstream.JetStream, subject string) (*Letters, error) {
	if js == nil || subject == "" {
		return nil, errors.New("natsconsume: want a JetStream context and a subject for dead letters")
	}
	return &Letters{js, subject}, nil
}

// Put publishes the event of a letter as it came, with headers that say why (see
// [consume.Binding.Original]), and returns once the stream has stored it. Of one that is
// too large for the server or the stream a notice is published (see [consume.Binding.Notice]).
func (l *Letters) Put(ctx context.Context, x deadletter.Letter) error {
	headers, body := consume.NATS.Original(x)
	err := l.publish(ctx, x, headers, body)
	if tooLarge(err) {
		err = l.publish(ctx, x, consume.NATS.Notice(x), nil)
	}
	if err != nil {
		return fmt.Errorf("natsconsume: dead letter not published to %s: %w", l.subject, err)
	}
	return nil
}

// tooLarge reports whether a message will never be taken as it is.
func tooLarge(err error) bool {
	said, ok := errors.AsType[*jetstream.APIError](err)
	return errors.Is(err, nats.ErrMaxPayload) || ok && said.ErrorCode == exceedsMax
}

// exceedsMax is JetStream's code of a message that is larger than its stream takes.
const exceedsMax = 10054

// Headers of the server's own are for the stream that an event came to: on that of letters
// they would have a message refused, expire, or replace all others.
const (
	ofServer = "nats-"
	travels  = "x-forbear-"
)

func (l *Letters) publish(ctx context.Context, x deadletter.Letter, headers []deadletter.Header, body []byte) error {
	msg := nats.NewMsg(l.subject)
	for _, h := range headers {
		if strings.HasPrefix(strings.ToLower(h.Name), ofServer) {
			h.Name = travels + h.Name
		}
		msg.Header[h.Name] = append(msg.Header[h.Name], h.Value)
	}
	msg.Header.Set(jetstream.MsgIDHeader, consume.PublishID(x))
	msg.Data = body
	_, err := l.js.PublishMsg(ctx, msg)
	return err
}
