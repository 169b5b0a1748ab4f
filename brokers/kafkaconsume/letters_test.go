package kafkaconsume_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/forbear-go/forbear/brokers/internal/brokertest"
	"github.com/forbear-go/forbear/brokers/kafkaconsume"
)

func TestLettersOnTheFake(t *testing.T) {
	b := open(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.UnknownTopicRetries(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	topic, err := kafkaconsume.NewLetters(client, "orders-dead")
	if err != nil {
		t.Fatal(err)
	}
	var reader *kgo.Client
	declare := func(t *testing.T) {
		create := kmsg.NewCreateTopicsRequestTopic()
		create.Topic, create.NumPartitions, create.ReplicationFactor = "orders-dead", 1, 1
		req := kmsg.NewCreateTopicsRequest()
		req.Topics = append(req.Topics, create)
		resp, err := req.RequestWith(t.Context(), b.producer)
		if err == nil {
			err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		}
		if err != nil {
			t.Fatal(err)
		}
		if reader, err = kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.ConsumeTopics("orders-dead"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(reader.Close)
	}
	var here []*kgo.Record
	brokertest.Topic(t, b, topic, "ce_", declare, func(t *testing.T) brokertest.Message {
		for range 600 {
			if len(here) > 0 {
				break
			}
			here = reader.PollFetches(t.Context()).Records()
			time.Sleep(10 * time.Millisecond)
		}
		if len(here) == 0 {
			t.Fatal("no record")
		}
		rec := here[0]
		here = here[1:]
		m := brokertest.Message{Headers: map[string]string{}, Body: string(rec.Value)}
		for _, h := range rec.Headers {
			m.Headers[h.Key] = string(h.Value)
		}
		if m.Headers["ce_id"] == "e1" && string(rec.Key) != "k" {
			t.Errorf("the key is %q", rec.Key)
		}
		return m
	})
}
