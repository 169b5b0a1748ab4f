package turns

import (
	"math/rand/v2"
	"time"
)

// options have a default for what their users leave out.
type options struct {
	Backoff func(attempt int) time.Duration
	Spread  func(attempt int) time.Duration
}

func steady(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func fill(o options) options {
	if o.Backoff == nil {
		o.Backoff = steady(10 * time.Second)
	}
	if o.Spread == nil {
		o.Spread = func(attempt int) time.Duration { return rand.N(time.Second << attempt) }
	}
	return o
}

func byDefault(url string, o options) (err error) {
	for i := range 9 { // want `FB1001: retries turns.get on failure`
		if _, err = get(url); err == nil {
			return nil
		}
		time.Sleep(o.Backoff(i))
	}
	return err
}

func spreadByDefault(url string, o options) (err error) {
	for i := range 9 {
		if _, err = get(url); err == nil {
			return nil
		}
		time.Sleep(o.Spread(i))
	}
	return err
}
