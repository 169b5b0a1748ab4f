package httpretry_test

import (
	"math"
	"net/http"
	"sync"
	"time"
)

// cubic is the client rate limiter of the AWS SDKs' adaptive mode as it is published: a
// token bucket before each send, whose rate falls to 0.7 of what was sent when a send is
// throttled and climbs along a cubic curve otherwise.
type cubic struct {
	next http.RoundTripper

	mu                      sync.Mutex
	enabled                 bool
	fill, capacity, tokens  float64
	last                    time.Time
	measured, bucket, count float64
	lastMax, window         float64
	throttled               time.Time
}

func (c *cubic) RoundTrip(req *http.Request) (*http.Response, error) {
	c.acquire()
	resp, err := c.next.RoundTrip(req)
	c.update(err == nil && resp.StatusCode == 429)
	return resp, err
}

func (c *cubic) acquire() {
	for {
		c.mu.Lock()
		if !c.enabled {
			c.mu.Unlock()
			return
		}
		if c.refill(); c.tokens >= 1 {
			c.tokens--
			c.mu.Unlock()
			return
		}
		wait := time.Duration((1 - c.tokens) / c.fill * float64(time.Second))
		c.mu.Unlock()
		time.Sleep(max(wait, time.Millisecond))
	}
}

func (c *cubic) refill() {
	now := time.Now()
	if !c.last.IsZero() {
		c.tokens = min(c.capacity, c.tokens+now.Sub(c.last).Seconds()*c.fill)
	}
	c.last = now
}

func (c *cubic) update(throttled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.count++
	if at := math.Floor(float64(now.UnixNano())/1e9*2) / 2; at > c.bucket {
		c.measured = c.count/(at-c.bucket)*0.8 + c.measured*0.2
		c.count, c.bucket = 0, at
	}
	var rate float64
	if throttled {
		use := c.measured
		if c.enabled {
			use = min(use, c.fill)
		}
		c.lastMax, c.throttled, c.enabled = use, now, true
		c.window = math.Cbrt(c.lastMax * 0.3 / 0.4)
		rate = use * 0.7
	} else {
		c.window = math.Cbrt(c.lastMax * 0.3 / 0.4)
		rate = 0.4*math.Pow(now.Sub(c.throttled).Seconds()-c.window, 3) + c.lastMax
	}
	c.refill()
	c.fill = max(min(rate, 2*c.measured), 0.5)
	c.capacity = max(c.fill, 1)
	c.tokens = min(c.tokens, c.capacity)
}
