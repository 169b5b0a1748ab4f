package deadletter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/deadletter"
)

func TestMask(t *testing.T) {
	l := deadletter.Letter{
		Payload: []byte("planted"), History: []deadletter.Attempt{{Number: 1, Status: 503, Response: "planted"}},
		Headers: []deadletter.Header{
			{Name: "authorization", Value: "planted"},
			{Name: "Cookie", Value: "planted"},
			{Name: "X-Api-Key", Value: "planted"},
			{Name: "X-Hub-Signature", Value: "planted"},
			{Name: "x-session-id", Value: "planted"},
			{Name: "Stripe-Token", Value: "planted"},
			{Name: "X-Order", Value: "planted"},
			{Name: "content-type", Value: "text/4711"},
			{Name: "traceparent", Value: "00-4712"},
		},
	}
	m := l.Mask()
	if text := fmt.Sprintf("%s %+v %+v", m.Payload, m.Headers, m.History); strings.Contains(text, "planted") || !strings.Contains(text, "4711") || !strings.Contains(text, "4712") {
		t.Errorf("masked: %s", text)
	}
	if m.History[0].Status != 503 || len(m.Headers) != 9 {
		t.Errorf("more is gone than what is secret: %+v", m)
	}
	if string(l.Payload) != "planted" || l.Headers[0].Value != "planted" || l.History[0].Response != "planted" {
		t.Error("the original was changed")
	}
	if m := (deadletter.Letter{}).Mask(); m.Payload != nil {
		t.Errorf("a letter without a payload has one: %q", m.Payload)
	}
}
