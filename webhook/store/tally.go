package store

import "time"

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

// Counts are the numbers of a [Tally], whose JSON stores keep. The zero value is empty.
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
