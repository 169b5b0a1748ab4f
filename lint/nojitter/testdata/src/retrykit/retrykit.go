// Package retrykit stands for a library that no table knows.
package retrykit

import (
	"math/rand/v2"
	"time"
)

// Doubling waits twice as long each time.
func Doubling(first time.Duration, op func() error) (err error) {
	wait := first
	for range 4 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(wait)
		wait *= 2
	}
	return err
}

// Spread doubles a ceiling and draws below it.
func Spread(first time.Duration, op func() error) (err error) {
	ceiling := first
	for range 4 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(rand.N(ceiling))
		ceiling *= 2
	}
	return err
}

// Backoff is a schedule of the caller's choice.
type Backoff interface{ Next() time.Duration }

// With waits as its caller decides.
func With(b Backoff, op func() error) (err error) {
	for range 4 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(b.Next())
	}
	return err
}

// Seconds makes a wait of a number.
func Seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// WaitBefore waits longer before each attempt.
func WaitBefore(attempt int) { time.Sleep(time.Duration(attempt) * 100 * time.Millisecond) }

// WaitSeconds waits for as long as it is told.
func WaitSeconds(n int) { time.Sleep(time.Duration(n) * time.Second) }

// Client waits as its Wait says: by default twice as long each time.
type Client struct {
	Wait func(attempt int) time.Duration
}

func doubled(attempt int) time.Duration { return time.Second << attempt }

// NewClient makes one with the default.
func NewClient() *Client { return &Client{Wait: doubled} }

// Do calls op until it succeeds.
func (c *Client) Do(op func() error) (err error) {
	for attempt := range 4 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(c.Wait(attempt))
	}
	return err
}
