package kafkaconsume

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// faults collects options that do not fit.
type faults []error

func (f *faults) when(unfit bool, format string, args ...any) {
	if unfit {
		*f = append(*f, fmt.Errorf("kafkaconsume: "+format, args...))
	}
}

// fit refuses options under which events would be lost, or none be handled, each with what
// to set. Those that commit otherwise the client refuses beside the runner's own.
func fit(client *kgo.Client) error {
	var f faults
	topics, _ := client.OptValue(kgo.ConsumeTopics).(map[string]*regexp.Regexp)
	f.when(len(topics) == 0, "no topic: add kgo.ConsumeTopics")
	f.when(transactional(client), "remove kgo.TransactionalID: offsets would not be committed")
	f.when(client.OptValue(kgo.KeepControlRecords) == true, "remove kgo.KeepControlRecords: ends of transactions would be events")
	return errors.Join(f...)
}

// longestLinger leaves a letter time to be confirmed.
const longestLinger = time.Second

// fitForLetters refuses options under which letters would be lost, or none be produced to
// their topic.
func fitForLetters(client *kgo.Client, topic string) error {
	var f faults
	linger, _ := client.OptValue(kgo.ProducerLinger).(time.Duration)
	always := client.OptValue(kgo.DefaultProduceTopicAlways) == true && client.OptValue(kgo.DefaultProduceTopic) != topic
	f.when(client.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks(), "remove kgo.RequiredAcks: dead letters must reach all in-sync replicas")
	f.when(transactional(client), "remove kgo.TransactionalID: an aborted transaction would lose dead letters")
	f.when(client.OptValue(kgo.ManualFlushing) == true, "remove kgo.ManualFlushing: dead letters would wait for a flush")
	f.when(linger > longestLinger, "kgo.ProducerLinger %v: dead letters would not be confirmed in time; want %v or less", linger, longestLinger)
	f.when(always, "remove kgo.DefaultProduceTopicAlways: dead letters would not go to topic %s", topic)
	return errors.Join(f...)
}

func transactional(client *kgo.Client) bool { return client.OptValues(kgo.TransactionalID)[1] == true }
