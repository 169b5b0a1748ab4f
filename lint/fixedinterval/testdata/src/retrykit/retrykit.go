// Package retrykit stands for a library that no table knows: what its helpers do
// is read from their code.
package retrykit

import (
	"context"
	"math/rand/v2"
	"time"
)

// Again waits the same time after every failure, as its caller says.
func Again(attempts int, every time.Duration, op func() error) (err error) {
	for range attempts {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(every)
	}
	return err
}

// Quick is a helper over a helper.
func Quick(op func() error) error { return Again(3, time.Second, op) }

// Named calls what it is given through a literal.
func Named(name string, op func(name string) error) error {
	return Again(5, time.Second, func() error { return op(name) })
}

// Task is what Run attempts.
type Task interface {
	Do(ctx context.Context) error
}

// Run attempts the method of an interface.
func Run(ctx context.Context, t Task, every time.Duration) (err error) {
	for range 4 {
		if err = t.Do(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
	return err
}

// Options has the settings of a Retrier.
type Options struct {
	Pause time.Duration
	Next  func(attempt int) time.Duration
}

// Retrier waits the pause that it is made with.
type Retrier struct{ opts Options }

func New(opts Options) *Retrier { return &Retrier{opts} }

func (r *Retrier) Retry(op func() error) (err error) {
	for range 4 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(r.opts.Pause)
	}
	return err
}

// Decided waits as its settings decide.
func (r *Retrier) Decided(op func() error) (err error) {
	for n := range 4 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(r.opts.Next(n))
	}
	return err
}

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

// Spread draws each wait.
func Spread(most time.Duration, op func() error) (err error) {
	for range 4 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(rand.N(most))
	}
	return err
}

// Once waits, and attempts nothing again.
func Once(after time.Duration, op func() error) error {
	time.Sleep(after)
	return op()
}

// Until waits for a state.
func Until(every time.Duration, ready func() (bool, error)) error {
	for {
		ok, err := ready()
		if err != nil {
			return err
		}
		if ok {
			return nil
		}
		time.Sleep(every)
	}
}
