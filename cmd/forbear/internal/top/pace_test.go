package top

import (
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
		{&gateway.PaceStatus{Rate: 198.4, Waiting: 40}, "paced at 198/s, 40 wait"},
		{&gateway.PaceStatus{Rate: 198.4, Waiting: 40, Closed: true}, "refuses everything, 40 wait"},
	} {
		now := gateway.Status{At: time.Now(), Dependencies: []gateway.DependencyStatus{{Dependency: "payments", Pace: tt.pace}}}
		text := newView(gateway.Status{}, now).lines()
		if _, notes, _ := strings.Cut(text, "notes="); strings.Trim(notes, "\"\n") != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.pace, notes, tt.want)
		}
	}
}
