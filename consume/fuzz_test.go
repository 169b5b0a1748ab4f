package consume_test

import (
	"testing"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// Whatever comes in, it is an event with a name or an error.
func FuzzDecode(f *testing.F) {
	f.Add("application/cloudevents+json", "", []byte(`{"specversion":"1.0","id":"a","source":"/s","type":"t","data_base64":"AAH/"}`))
	f.Add("text/plain", "1.0", []byte("hello"))
	f.Add("application/cloudevents-batch+json", "1.0", []byte("[]"))
	f.Add("", "0.3", []byte{})
	f.Fuzz(func(t *testing.T, media, version string, data []byte) {
		for _, b := range []consume.Binding{consume.HTTP, consume.Kafka, consume.AMQP} {
			headers := []deadletter.Header{{Name: "content-type", Value: media}, {Name: b.Prefix + "specversion", Value: version}, {Name: b.Prefix + "id", Value: string(data)}}
			e, err := b.Decode(headers, data)
			if err == nil && (e.ID == "" || e.Source == "" || e.Type == "") {
				t.Errorf("an event without a name: %+v", e)
			}
			if err != nil && string(e.Data) != string(data) {
				t.Errorf("what cannot be decoded must come through as it is: %q", e.Data)
			}
		}
	})
}
