package store

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/webhook"
)

// A letter holds all that a redrive needs: the message that comes out of it is
// the one that went in, with its id and its key.
func TestLetterHoldsTheMessage(t *testing.T) {
	m := webhook.Message{
		ID: "m1", Endpoints: []string{"a"}, Type: "order.made", Source: "/shop", Subject: "s", Key: "k", IdempotencyKey: "ik", CorrelationID: "c",
		ContentType: "text/plain", Headers: []webhook.Header{{Name: "X-A", Value: "1"}}, Created: time.Unix(1, 0), Body: []byte("body"),
	}
	dl := &Delivery{Endpoint: "a", Message: m, Progress: edge.Progress{Attempts: 5, Postponed: 2}}
	l := dl.DeadLetter(&webhook.Endpoint{ID: "a", Version: 3}, reason.Exhausted, 8, time.Unix(2, 0))
	if got := FromLetter(*l); !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, want %+v", got, m)
	}
	if l.ID == "" || l.Queue != webhook.Queue || l.State != deadletter.Dead || l.Attempts != 5 || l.MaxAttempts != 8 || l.Postponed != 2 || !l.DeadAt.Equal(time.Unix(2, 0)) {
		t.Errorf("the letter is %+v", l)
	}
	if dl.Endpoint = webhook.AlertEndpoint; dl.DeadLetter(&webhook.Endpoint{}, reason.Exhausted, 8, time.Now()).Queue != webhook.AlertQueue {
		t.Error("an alert that could not be delivered would raise the next")
	}
}

// The description says why in one line. 410 is gone, whatever the decision says.
func TestLetterSaysWhy(t *testing.T) {
	for _, c := range []struct {
		name                string
		why                 forbear.Reason
		last                string
		attempts, postponed int
		reason, description string
	}{
		{"never attempted", reason.Deadline, "", 0, 0, "deadline", "deadline after 0 attempts"},
		{"failed", reason.Exhausted, "http_503", 5, 0, "exhausted", "exhausted (http_503) after 5 attempts"},
		{"put off", reason.Deadline, "timeout", 1, 2, "deadline", "deadline (timeout) after 1 attempt and 2 postponements"},
		{"gone", reason.Terminal, "http_410", 1, 0, deadletter.ReasonGone, "gone (http_410) after 1 attempt"},
	} {
		dl := &Delivery{Endpoint: "a", Progress: edge.Progress{Attempts: c.attempts, Postponed: c.postponed, Last: c.last}}
		l := dl.DeadLetter(&webhook.Endpoint{ID: "a"}, c.why, 8, time.Now())
		if l.Reason != c.reason || l.Description != c.description {
			t.Errorf("%s: got %q, %q", c.name, l.Reason, l.Description)
		}
	}
}

// Letters under the same policy have the same version of it.
func TestPolicyVersion(t *testing.T) {
	e, same, other := &webhook.Endpoint{Version: 3}, &webhook.Endpoint{Version: 3, URL: "https://example.com/"}, &webhook.Endpoint{Version: 3}
	other.Policy.MaxAttempts = 4
	if v := policyVersion(e); v != policyVersion(same) || v == policyVersion(other) {
		t.Errorf("versions are %s, %s and %s", v, policyVersion(same), policyVersion(other))
	}
}

// What was accepted nowhere goes back to where it was to go, and no endpoint can be
// called like an application.
func TestLetterOfAnApplication(t *testing.T) {
	for _, m := range []webhook.Message{{ID: "m", Application: "acme"}, {ID: "m", Endpoints: []string{"application:acme"}}} {
		got := FromLetter(deadletter.Letter{EventID: "m", Destination: DestinationOf(&m)})
		if got.Application != m.Application || !slices.Equal(got.Endpoints, m.Endpoints) {
			t.Errorf("got %+v, want %+v", got, m)
		}
	}
	if (&webhook.Endpoint{ID: DestinationOf(&webhook.Message{Application: "acme"}), URL: "https://example.com/"}).Validate(webhook.Guard{}) == nil {
		t.Error("an endpoint can be called like an application")
	}
}
