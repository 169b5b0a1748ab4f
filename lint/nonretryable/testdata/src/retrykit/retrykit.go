// Package retrykit has helpers that tell final errors from others, each in
// another way.
package retrykit

import (
	"errors"
	"math/rand/v2"
	"time"
)

type permanent struct{ err error }

func (p *permanent) Error() string { return p.err.Error() }

// Permanent marks an error as final.
func Permanent(err error) error { return &permanent{err} }

// Do ends at an error that is marked as final.
func Do(op func() error) (err error) {
	for range 4 {
		if err = op(); err == nil {
			return nil
		}
		var final *permanent
		if errors.As(err, &final) {
			return final.err
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

// Over is a helper over a helper.
func Over(op func() error) error { return Do(func() error { return op() }) }

// ErrStop ends Loop.
var ErrStop = errors.New("stop")

// Loop ends at ErrStop.
func Loop(op func() error) {
	for op := op; ; time.Sleep(rand.N(time.Second)) {
		err := op()
		if err == nil || err == ErrStop {
			return
		}
	}
}

// Options holds a predicate with a default.
type Options struct{ again func(error) bool }

func passing(err error) bool { return !errors.Is(err, ErrStop) }

// Chosen asks the predicate of its options.
func Chosen(op func() error, set ...func(*Options)) (err error) {
	o := &Options{again: passing}
	for _, s := range set {
		s(o)
	}
	for range 4 {
		if err = op(); err == nil || !o.again(err) {
			return err
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

// Odd chooses by the text of an error, which says nothing here.
func Odd(op func() error) (err error) {
	for range 4 {
		if err = op(); err == nil || odd(err) {
			return err
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func odd(err error) bool { return len(err.Error())%2 == 1 }

// Answered is an error that holds the status of a response.
type Answered struct{ Code int }

func (e *Answered) Error() string { return "answered" }

// ByCode retries what may pass, by the status in the error.
func ByCode(op func() error) (err error) {
	for range 5 {
		if err = op(); err == nil {
			return nil
		}
		a, ok := err.(*Answered)
		if !ok || a.Code != 429 && a.Code < 500 {
			return err
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

// ByType retries all that holds a status.
func ByType(op func() error) (err error) {
	for range 5 {
		if err = op(); err == nil {
			return nil
		}
		if _, ok := err.(*Answered); !ok {
			return err
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}
