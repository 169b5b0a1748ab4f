package top

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

// A dependency that limits its callers shows the rate that was learned, and how many
// calls wait for it.
func TestTopShowsThePace(t *testing.T) {
	for _, tt := range []struct {
		pace *gateway.PaceStatus
		want string
	}{
		{nil, ""},
		{&gateway.PaceStatus{Waiting: 3}, ""},
		{&gateway.PaceStatus{Rate: 198.4, Waiting: 40}, "paced at 198/s, 40 waiting"},
		{&gateway.PaceStatus{Rate: 198.4, Waiting: 40, Closed: true}, "refuses everything, 40 waiting"},
	} {
		now := gateway.Status{At: time.Now(), Dependencies: []gateway.DependencyStatus{{Dependency: "payments", Pace: tt.pace}}}
		text := newView(gateway.Status{}, now).lines()
		if _, notes, _ := strings.Cut(text, "notes="); strings.Trim(notes, "\"\n") != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.pace, notes, tt.want)
		}
	}
}

// What holds an endpoint of webhooks is named, with the time of its next message, and
// so are the retries that it has earned.
func TestTopShowsWhatHoldsDeliveries(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)
	now := gateway.Status{At: at, Dependencies: []gateway.DependencyStatus{
		{Dependency: "webhook:acme", Delivery: &gateway.DeliveryStatus{Hold: "rejecting", NextProbe: at.Add(4 * time.Minute)}},
		{Dependency: "webhook:beta", Earned: 12, Delivery: &gateway.DeliveryStatus{NextProbe: at.Add(time.Minute)}, Breaker: &gateway.BreakerStatus{State: "open", NextProbe: at.Add(5 * time.Second)}},
	}}
	v := newView(gateway.Status{At: at.Add(-time.Second)}, now)
	for _, want := range []string{`notes="rejecting, next message in 4m0s"`, `breaker="open (0%), probe in 1m0s"`, `notes="12 retries earned"`} {
		if got := v.lines(); !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
	data, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(data), `"hold":"rejecting"`) || !strings.Contains(string(data), `"earned_retries":12`) {
		t.Errorf("got %s, %v", data, err)
	}
}
