package webhook

import (
	"encoding/json"
	"time"
)

// Slot is how long a [Tally] counts.
const Slot = 10 * time.Minute

// SlotOf returns the number of the slot that a time is in.
func SlotOf(t time.Time) int64 { return t.Unix() / int64(Slot/time.Second) }

// latencies are the bounds of the buckets that attempts are counted in.
var latencies = [...]time.Duration{
	10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Tally counts the attempts to an endpoint in one slot, of one process or more.
type Tally struct {
	Endpoint string
	Slot     int64
	Counts
}

// Counts are the numbers of a [Tally]. The zero value is empty.
type Counts struct {
	// Responses are by the first digit of the status; at 0 are those without.
	Responses [6]int64                  `json:"r"`
	Latencies [len(latencies) + 1]int64 `json:"l"` // by bucket
	Took      time.Duration             `json:"t"` // all of them
	Longest   time.Duration             `json:"m"`
}

// Add counts an attempt with its status, 0 for none, and the time that it took.
func (c *Counts) Add(status int, took time.Duration) {
	class := status / 100
	if class < 0 || class >= len(c.Responses) {
		class = 0
	}
	c.Responses[class]++
	bucket := 0
	for bucket < len(latencies) && took > latencies[bucket] {
		bucket++
	}
	c.Latencies[bucket]++
	c.Took += took
	c.Longest = max(c.Longest, took)
}

// Merge adds what another one has counted.
func (c *Counts) Merge(o *Counts) {
	for i := range c.Responses {
		c.Responses[i] += o.Responses[i]
	}
	for i := range c.Latencies {
		c.Latencies[i] += o.Latencies[i]
	}
	c.Took += o.Took
	c.Longest = max(c.Longest, o.Longest)
}

// MarshalText makes what a store keeps of the counts, and UnmarshalText reads it.
func (c *Counts) MarshalText() ([]byte, error) {
	type plain Counts
	return json.Marshal((*plain)(c))
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Counts) UnmarshalText(text []byte) error {
	type plain Counts
	return json.Unmarshal(text, (*plain)(c))
}

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

// EndpointStats is how an endpoint fares, as the store knows it: any process has the
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
	OldestAge   time.Duration `json:"oldest_age"`
	DeadLetters int           `json:"dead_letters"`
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
