package consume

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// The headers that say on a topic of dead letters why a message is there. Those that
// would be empty are left out. The error is shown without what it quotes, on one
// line.
const (
	HeaderLetter    = "forbear-letter" // the id of the letter, as forbear dlq has it
	HeaderQueue     = "forbear-queue"
	HeaderGroup     = "forbear-group"
	HeaderReason    = "forbear-reason"
	HeaderErrorType = "forbear-error-type"
	HeaderError     = "forbear-error"
	HeaderCause     = "forbear-cause" // a deadletter.Letter's Fingerprint
	HeaderAttempts  = "forbear-attempts"
	HeaderDeadAt    = "forbear-dead-at" // RFC 3339
	HeaderEventID   = "forbear-event-id"
	HeaderTrace     = "forbear-trace-id"

	ownPrefix = "forbear-"
)

// maxHeader bounds the error in a header, in bytes.
const maxHeader = 512

// Original returns the message that the event of a letter came as, for a topic of
// dead letters: its body and its headers, behind them those that say why. Headers
// that carry credentials have [deadletter.Masked] for their value, as in the letter
// . Headers of this package that it came with are replaced. An event in
// structured mode, whose envelope the letter does not have, is in binary mode.
func (b Binding) Original(l deadletter.Letter) (headers []deadletter.Header, body []byte) {
	add := func(name, value string) {
		if value != "" {
			headers = append(headers, deadletter.Header{Name: name, Value: value})
		}
	}
	structured := strings.HasPrefix(header(l.Headers, "Content-Type"), structuredType) && l.EventID != "" && l.ContentType != header(l.Headers, "Content-Type")
	for _, h := range l.Headers {
		own := len(h.Name) >= len(ownPrefix) && strings.EqualFold(h.Name[:len(ownPrefix)], ownPrefix)
		if !own && !(structured && strings.EqualFold(h.Name, "Content-Type")) {
			headers = append(headers, h)
		}
	}
	if structured {
		add("content-type", l.ContentType)
		for _, a := range []deadletter.Header{
			{Name: "specversion", Value: "1.0"},
			{Name: "id", Value: l.EventID},
			{Name: "source", Value: l.Source},
			{Name: "type", Value: l.Type},
			{Name: "subject", Value: l.Subject},
			{Name: "partitionkey", Value: l.PartitionKey},
			{Name: "time", Value: l.EnqueuedAt.Format(time.RFC3339Nano)},
		} {
			add(b.Prefix+a.Name, b.escape(a.Value))
		}
	}
	shown := l.Mask()
	add(HeaderLetter, l.ID)
	add(HeaderQueue, l.Queue)
	add(HeaderGroup, l.Destination)
	add(HeaderReason, l.Reason)
	add(HeaderErrorType, l.ErrorType)
	add(HeaderError, deadletter.Clip(strings.Join(strings.Fields(shown.Error), " "), maxHeader))
	add(HeaderCause, l.Fingerprint())
	add(HeaderAttempts, strconv.Itoa(l.Attempts))
	add(HeaderDeadAt, l.DeadAt.UTC().Format(time.RFC3339))
	add(HeaderEventID, strings.Join(strings.Fields(l.EventID), " "))
	add(HeaderTrace, l.TraceID)
	return headers, l.Payload
}

// structuredType begins the content type of an event in structured mode.
const structuredType = "application/cloudevents+"

// escape writes the value of an attribute as the binding wants it.
func (b Binding) escape(v string) string {
	if !b.Escaped {
		return v
	}
	var s strings.Builder
	for i := range len(v) {
		if c := v[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&s, "%%%02X", c)
		} else {
			s.WriteByte(c)
		}
	}
	return s.String()
}

// PublishID names one death of an event for a broker that drops messages which it
// has: the same when the publishing of a letter is repeated, another when the event
// dies again after a redrive.
func PublishID(l deadletter.Letter) string {
	if l.LastAttempt.IsZero() {
		return l.ID
	}
	return l.ID + "." + strconv.FormatInt(l.LastAttempt.UnixMicro(), 36)
}

// HeaderLeftOut says on a topic that a message is too large for it with what this package
// adds: the letter alone has the event.
const HeaderLeftOut = "forbear-left-out"

// Notice is what goes to a topic that does not take the message of [Binding.Original],
// since it is too large: no body, and the headers that say why and where the letter is.
func (b Binding) Notice(l deadletter.Letter) []deadletter.Header {
	notice := l
	notice.Headers, notice.Payload = nil, nil
	headers, _ := b.Original(notice)
	return append(headers, deadletter.Header{Name: HeaderLeftOut, Value: fmt.Sprintf("%d bytes", len(l.Payload))})
}
