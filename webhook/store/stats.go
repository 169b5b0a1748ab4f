package store

import (
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// AttemptStats sums up the attempts to an endpoint since a time.
type AttemptStats struct {
	Since     time.Time `json:"since"`
	Delivered int64     `json:"delivered"`
	Failed    int64     `json:"failed"`
	// Responses are by class: "2xx" to "5xx", and "none" for attempts without a
	// response.
	Responses map[string]int64 `json:"responses"`
	Mean      time.Duration    `json:"mean"`
	// P50, P95 and P99 are bounds: so many took at most that long.
	P50     time.Duration `json:"p50"`
	P95     time.Duration `json:"p95"`
	P99     time.Duration `json:"p99"`
	Longest time.Duration `json:"longest"`
}

// Stats sums the counts up, of attempts since a time.
func (c *Counts) Stats(since time.Time) AttemptStats {
	s := AttemptStats{Since: since, Delivered: c.Responses[2], Responses: map[string]int64{}, Longest: c.Longest}
	total := int64(0)
	for class, name := range [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		if n := c.Responses[class]; n > 0 {
			s.Responses[name] = n
			total += n
		}
	}
	s.Failed = total - s.Delivered
	if total > 0 {
		s.Mean = (c.Took / time.Duration(total)).Round(time.Microsecond)
	}
	s.P50, s.P95, s.P99 = c.within(total, 0.50), c.within(total, 0.95), c.within(total, 0.99)
	return s
}

// within returns a time that a share of the attempts took at most.
func (c *Counts) within(total int64, share float64) time.Duration {
	seen := int64(0)
	for i, n := range c.Latencies {
		if seen += n; total > 0 && float64(seen) >= share*float64(total) {
			if i < len(latencies) {
				return min(latencies[i], c.Longest)
			}
			break
		}
	}
	return c.Longest
}

// EndpointFilter chooses endpoints. An empty field chooses all.
type EndpointFilter struct {
	Application string
	State       webhook.EndpointState
	Text        string // a part of the id or the URL; case does not count
}

// Chooses reports whether the filter's Text is in the id or the URL of an endpoint. One
// that cannot be read has its id alone.
func (f EndpointFilter) Chooses(e *webhook.Endpoint) bool {
	text := strings.ToLower(f.Text)
	return strings.Contains(strings.ToLower(e.ID), text) || strings.Contains(strings.ToLower(e.URL), text)
}

// EndpointStats is the state of an endpoint as the store knows it: any process has the
// same. Attempts are those that processes have reported, which lags by some seconds.
type EndpointStats struct {
	Endpoint string `json:"endpoint"`
	// Backlog is Waiting, Held and Sending together.
	Backlog int `json:"backlog"`
	Waiting int `json:"waiting"`
	Held    int `json:"held"`
	Sending int `json:"sending"`
	// Unreadable are those of Waiting that were due, and wait since the process that looked
	// could not read them: it lacked the key that they are encrypted under.
	Unreadable int `json:"unreadable,omitempty"`
	// OldestAge is how long the first that is due has been due; 0: none is.
	OldestAge time.Duration `json:"oldest_age"`
	// NextAttempt is when the first that waits is due; zero: none waits.
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	DeadLetters int       `json:"dead_letters"`
	// Capped says that one of the numbers is the most that was counted.
	Capped bool         `json:"capped,omitempty"`
	Hour   AttemptStats `json:"last_hour"`
	Day    AttemptStats `json:"last_day"`
}

// OutboxStats is what waits in the outbox.
type OutboxStats struct {
	Depth     int           `json:"depth"`
	Capped    bool          `json:"capped,omitempty"` // there are more
	OldestAge time.Duration `json:"oldest_age"`
	// Aside are the rows that wait until their applications are suspended no more. They
	// are not among Depth.
	Aside int `json:"aside,omitempty"`
}
