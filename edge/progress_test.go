package edge

import (
	"testing"
	"time"
)

// What was put off waits for what is left of its backoff, and for the server's
// own wait to its end.
func TestPendingKeepsTheServersWait(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		until time.Duration // after the failure; 0 for none
		wait  time.Duration
		now   time.Duration
		want  time.Duration
	}{
		{"part of it has passed", 0, time.Minute, 20 * time.Second, 40 * time.Second},
		{"all of it has passed", 0, time.Minute, time.Hour, 0},
		{"the server's wait has not", 10 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute},
		{"the server's wait has", 10 * time.Minute, time.Minute, 11 * time.Minute, 0},
		{"the clock was set back", 0, time.Minute, -time.Hour, 0},
	} {
		p := &Pending{At: at}
		if c.until > 0 {
			p.Until = at.Add(c.until)
		}
		if got := p.left(c.wait, at.Add(c.now)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
