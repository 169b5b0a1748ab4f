package consume

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
)

// Binding is how a protocol carries the attributes of a CloudEvent 1.0 beside
// its data.
type Binding struct {
	Prefix  string // of the headers that are attributes, whatever their case
	Escaped bool   // values are percent-encoded
}

// The bindings of the CloudEvents specifications.
var (
	HTTP  = Binding{Prefix: "ce-", Escaped: true}
	NATS  = Binding{Prefix: "ce-", Escaped: true}
	Kafka = Binding{Prefix: "ce_"}
	AMQP  = Binding{Prefix: "cloudevents:"}
)

const (
	// RedriveHeader marks an event that was sent again from the dead-letter
	// queue. Its value, the letter's id, is for people.
	RedriveHeader = "Forbear-Redrive"

	correlationHeader = "X-Correlation-Id"
)

var (
	// ErrNotCloudEvent means that a message does not claim to be a
	// CloudEvent.
	ErrNotCloudEvent = errors.New("not a CloudEvent")

	errMedia = errors.New("media type not supported")
)

// Decode reads an event in binary or structured mode. On an error it returns
// what there is of it, for the dead letter; [ErrNotCloudEvent] means that an
// adapter may have another idea of what the message is.
func (b Binding) Decode(headers []deadletter.Header, data []byte) (Event, error) {
	e := Event{Headers: headers, Data: data, ContentType: header(headers, "Content-Type"), Redrive: header(headers, RedriveHeader) != ""}
	e.CorrelationID = header(headers, correlationHeader)
	if e.CorrelationID == "" {
		e.CorrelationID = b.attribute(headers, "correlationid")
	}
	media, _, _ := mime.ParseMediaType(e.ContentType)
	version := b.attribute(headers, "specversion")
	switch {
	case media == "application/cloudevents+json":
		return structured(e, data)
	case strings.HasPrefix(media, "application/cloudevents"): // a batch, or another format
		return e, errMedia
	case version == "" && b.attribute(headers, "id") == "":
		return e, ErrNotCloudEvent
	}
	get := func(name string) string { return b.attribute(headers, name) }
	e.ID, e.Source, e.Type, e.Subject, e.Key = get("id"), get("source"), get("type"), get("subject"), get("partitionkey")
	if t, err := time.Parse(time.RFC3339, get("time")); err == nil {
		e.Time = t
	}
	return e, check(version, &e)
}

// attribute returns a CloudEvent's attribute from the headers. A value that
// cannot be unescaped is taken as it is.
func (b Binding) attribute(headers []deadletter.Header, name string) string {
	v := header(headers, b.Prefix+name)
	if plain, err := url.PathUnescape(v); b.Escaped && err == nil {
		return plain
	}
	return v
}

// header returns the first value under a name.
func header(headers []deadletter.Header, name string) string {
	for _, h := range headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// check holds the attributes that CloudEvents 1.0 requires. id and source
// are the event's identity, without which nothing can be deduplicated.
func check(version string, e *Event) error {
	switch {
	case version != "1.0":
		return fmt.Errorf("specversion %.20q is not 1.0", version)
	case e.ID == "" || e.Source == "" || e.Type == "":
		return errors.New("id, source or type is missing")
	}
	return nil
}

// structured reads an event whose attributes are in the body. Errors quote
// none of it: the body is the sender's data.
func structured(e Event, body []byte) (Event, error) {
	var in struct {
		SpecVersion     string          `json:"specversion"`
		ID              string          `json:"id"`
		Source          string          `json:"source"`
		Type            string          `json:"type"`
		Subject         string          `json:"subject"`
		PartitionKey    string          `json:"partitionkey"`
		Time            time.Time       `json:"time"`
		Traceparent     string          `json:"traceparent"`
		Tracestate      string          `json:"tracestate"`
		DataContentType string          `json:"datacontenttype"`
		Data            json.RawMessage `json:"data"`
		DataBase64      *string         `json:"data_base64"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return e, errors.New("the event is not a JSON object of CloudEvents 1.0")
	}
	e.ID, e.Source, e.Type, e.Subject, e.Key, e.Time = in.ID, in.Source, in.Type, in.Subject, in.PartitionKey, in.Time
	e.trace = edge.ParseTraceContext(in.Traceparent, in.Tracestate)
	if err := check(in.SpecVersion, &e); err != nil {
		return e, err
	}
	if in.DataBase64 != nil {
		data, err := base64.StdEncoding.DecodeString(*in.DataBase64)
		if err != nil {
			return e, errors.New("data_base64 is not base64")
		}
		e.Data, e.ContentType = data, in.DataContentType
		return e, nil
	}
	e.Data, e.ContentType = in.Data, in.DataContentType
	return e, nil
}
