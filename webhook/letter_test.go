package webhook

import (
	"reflect"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

// A letter holds all that a redrive needs: the message that comes out of it is
// the one that went in, with its id and its key.
func TestLetterHoldsTheMessage(t *testing.T) {
	m := Message{
		ID: "m1", Endpoints: []string{"a"}, Type: "order.made", Source: "/shop", Subject: "s", Key: "k", IdempotencyKey: "ik", CorrelationID: "c",
		ContentType: "text/plain", Headers: []Header{{Name: "X-A", Value: "1"}}, Created: time.Unix(1, 0), Body: []byte("body"),
	}
	dl := &Delivery{Endpoint: "a", Message: m, Progress: forbear.Progress{Attempts: 5, Postponed: 2}}
	l := dl.DeadLetter(&Endpoint{ID: "a", Version: 3}, forbear.ReasonExhausted, 8, time.Unix(2, 0))
	if got := FromLetter(*l); !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, want %+v", got, m)
	}
	if l.ID == "" || l.Queue != Queue || l.State != deadletter.Dead || l.Attempts != 5 || l.MaxAttempts != 8 || l.Postponed != 2 || !l.DeadAt.Equal(time.Unix(2, 0)) {
		t.Errorf("the letter is %+v", l)
	}
	if dl.Endpoint = AlertEndpoint; dl.DeadLetter(&Endpoint{}, forbear.ReasonExhausted, 8, time.Now()).Queue != AlertQueue {
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
		{"never attempted", forbear.ReasonDeadline, "", 0, 0, "deadline", "deadline after 0 attempts"},
		{"failed", forbear.ReasonExhausted, "http_503", 5, 0, "exhausted", "exhausted (http_503) after 5 attempts"},
		{"put off", forbear.ReasonDeadline, "timeout", 1, 2, "deadline", "deadline (timeout) after 1 attempt and 2 postponements"},
		{"gone", forbear.ReasonTerminal, "http_410", 1, 0, deadletter.ReasonGone, "gone (http_410) after 1 attempt"},
	} {
		dl := &Delivery{Endpoint: "a", Progress: forbear.Progress{Attempts: c.attempts, Postponed: c.postponed, Last: c.last}}
		l := dl.DeadLetter(&Endpoint{ID: "a"}, c.why, 8, time.Now())
		if l.Reason != c.reason || l.Description != c.description {
			t.Errorf("%s: got %q, %q", c.name, l.Reason, l.Description)
		}
	}
}

// Letters under the same policy have the same version of it.
func TestPolicyVersion(t *testing.T) {
	e, same, other := &Endpoint{Version: 3}, &Endpoint{Version: 3, URL: "https://example.com/"}, &Endpoint{Version: 3}
	other.Policy.MaxAttempts = 4
	if v := policyVersion(e); v != policyVersion(same) || v == policyVersion(other) {
		t.Errorf("versions are %s, %s and %s", v, policyVersion(same), policyVersion(other))
	}
}
