package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/webhook"
)

// applicationPrefix begins the destination of a letter that was to go to an
// application: no endpoint's id has a slash.
const applicationPrefix = "application/"

// DestinationOf returns the destination of the letter of a message that was accepted
// nowhere: an endpoint, or its application.
func DestinationOf(m *webhook.Message) string {
	if m.Application != "" || len(m.Endpoints) == 0 {
		return applicationPrefix + m.Application
	}
	return m.Endpoints[0]
}

// FromLetter returns the message that a letter of the webhooks' queue was, for
// its one endpoint, or for its application where it was accepted nowhere: with its id
// and its key, so that its receiver recognises it.
func FromLetter(l deadletter.Letter) webhook.Message {
	application, whole := strings.CutPrefix(l.Destination, applicationPrefix)
	endpoints := []string{l.Destination}
	if whole {
		endpoints = nil
	} else {
		application = ""
	}
	return webhook.Message{
		ID: l.EventID, Endpoints: endpoints, Application: application, Type: l.Type, Source: l.Source, Subject: l.Subject, Key: l.PartitionKey,
		IdempotencyKey: l.IdempotencyKey, CorrelationID: l.CorrelationID, ContentType: l.ContentType,
		Headers: l.Headers, Created: l.EnqueuedAt, Body: l.Payload,
	}
}

// DeadLetter returns the letter that a delivery to endpoint e becomes: all
// that a redrive needs, and all that an operator asks. The store adds the history
// of attempts that it has. Its failure is the latest one, if there was any; a
// receiver that said 410 is gone, whatever the decision was called.
func (dl *Delivery) DeadLetter(e *webhook.Endpoint, why forbear.Reason, maxAttempts int, now time.Time) *deadletter.Letter {
	m := &dl.Message
	letter := &deadletter.Letter{
		ID: webhook.NewID("dlq"), Queue: webhook.QueueOf(dl.Endpoint), Destination: dl.Endpoint, Application: e.Application,
		EventID: m.ID, Source: m.Source, Type: m.Type, Subject: m.Subject, PartitionKey: m.Key,
		IdempotencyKey: m.SentKey(), CorrelationID: m.CorrelationID,
		Payload: m.Body, ContentType: m.ContentType, Headers: m.Headers,
		Policy: e.Policy, PolicyVersion: policyVersion(e),
		Reason: why.String(), Attempts: dl.Progress.Attempts, MaxAttempts: maxAttempts, Postponed: dl.Progress.Postponed,
		EnqueuedAt: m.Created, DeadAt: now, State: deadletter.Dead,
		TraceID: deadletter.TraceID(m.Headers, m.CorrelationID),
	}
	letter.ErrorType, letter.Status = dl.Progress.Last, statusOf(dl.Progress.Last)
	if letter.Status == http.StatusGone {
		letter.Reason = deadletter.ReasonGone
	}
	letter.Description = describe(letter)
	return letter
}

// Abandoned returns the letter that a delivery becomes whose endpoint was deleted.
func (dl *Delivery) Abandoned(now time.Time) *deadletter.Letter {
	l := dl.DeadLetter(&webhook.Endpoint{}, reason.Canceled, 0, now)
	l.Reason = deadletter.ReasonDeleted
	l.Description = describe(l)
	return l
}

// statusOf returns the status of an error_type such as "http_503", or 0.
func statusOf(errorType string) int {
	text, _ := strings.CutPrefix(errorType, "http_")
	status, _ := strconv.Atoi(text)
	return status
}

// policyVersion names the policy that a letter was decided under: the version
// of its endpoint, and a digest by which letters under the same policy are found.
func policyVersion(e *webhook.Endpoint) string {
	text, err := json.Marshal(e.Policy)
	if err != nil {
		return "v" + strconv.FormatInt(e.Version, 10)
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("v%d-%s", e.Version, hex.EncodeToString(sum[:4]))
}

// describe says in one line why a letter was written, without anything of the
// payload or of the responses: it goes into lists and alerts.
func describe(l *deadletter.Letter) string {
	s := l.Reason
	if l.ErrorType != "" {
		s += " (" + l.ErrorType + ")"
	}
	s += " after " + count(l.Attempts, "attempt")
	if l.Postponed > 0 {
		s += " and " + count(l.Postponed, "postponement")
	}
	return deadletter.Clip(s, deadletter.MaxDescription)
}

// count returns "1 attempt", or "5 attempts".
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return strconv.Itoa(n) + " " + of + "s"
}
