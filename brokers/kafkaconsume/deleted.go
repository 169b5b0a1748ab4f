package kafkaconsume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/forbear-go/forbear/internal/wait"
)

// The client fetches on, in silence, from a topic that is deleted. So the brokers are
// asked: about every five seconds, and a topic is gone when three in a row do not know
// it, since one that has just started may not know it yet.
const (
	askEvery  = 5 * time.Second
	goneAfter = 3
	notSeen   = -1 // of a topic that may be created later
)

var errGone = errors.New("kafkaconsume: the topic is deleted")

// watch ends the runner once a topic that was there is deleted. Topics that are
// consumed by a pattern come and go.
func (r *Runner) watch(ctx context.Context, end context.CancelCauseFunc) {
	if pattern, _ := r.client.OptValue(kgo.ConsumeRegex).(bool); pattern {
		return
	}
	missing := map[string]int{} // how often in a row, of the topics that were there
	for more := true; more; more = wait.Sleep(ctx, wait.Jitter(2*askEvery)) {
		for _, topic := range r.client.GetConsumeTopics() {
			if _, known := missing[topic]; !known {
				missing[topic] = notSeen
			}
		}
		for topic, n := range missing {
			switch there, err := r.there(ctx, topic); {
			case err != nil: // the brokers are away
			case there:
				missing[topic] = 0
			case n != notSeen:
				missing[topic]++
			}
			if missing[topic] >= goneAfter {
				end(fmt.Errorf("%w: %s", errGone, topic))
				return
			}
		}
	}
}

// there asks the brokers whether a topic exists.
func (r *Runner) there(ctx context.Context, topic string) (bool, error) {
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = new(topic)
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, asked)
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil || len(resp.Topics) == 0 {
		return false, errors.Join(err, ctx.Err())
	}
	err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return false, nil
	}
	return err == nil, err
}
