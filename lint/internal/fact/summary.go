// Package fact holds what callers need to know of a function: whether it waits,
// what it sends, for which statuses it fails. The facts cross package
// boundaries, and are what the packages that judge waits, requests and statuses
// share.
package fact

import (
	"fmt"
	"slices"
)

// Summary is what callers need to know of a function. As a fact it crosses
// package boundaries, so that its fields are plain data: the go command stores
// them beside the compiled package. The zero value is a function of which
// nothing is known, or which does nothing of note.
type Summary struct {
	Wait     *Wait
	Clock    *Wait // of a returned channel or timer: when it fires
	Delay    Class // of a returned duration
	Retrier  bool  // calls a function parameter again when it fails
	Retries  bool  // retries something itself
	Attempts int   // of a Retrier or of Retries; 0 when not known
	Sends    []Send
	// Retried holds the requests that the function itself retries although
	// its caller chooses the method.
	Retried []Send
	Remote  bool // crosses an integration boundary
	Local   bool // touches files or processes of the machine
	// Fails holds, as a mask of the package status, for which statuses of
	// a response the function certainly returns an error.
	Fails uint16
	// Yes holds for which statuses a predicate certainly returns true.
	Yes uint16
}

// AFact makes Summary a fact.
func (*Summary) AFact() {}

// String is what analysis drivers print of a fact.
func (s *Summary) String() string {
	return fmt.Sprintf("wait=%v delay=%d retrier=%v retries=%v sends=%v remote=%v fails=%b yes=%b",
		s.Wait != nil, s.Delay, s.Retrier, s.Retries, s.Sends, s.Remote, s.Fails, s.Yes)
}

// Empty reports whether there is nothing for callers to know, so that no fact need
// be stored.
func (s *Summary) Empty() bool {
	return s.Wait == nil && s.Clock == nil && s.Delay == Pluggable && !s.Retrier && !s.Retries && len(s.Sends) == 0 && len(s.Retried) == 0 && !s.Remote && !s.Local && s.Fails == 0 && s.Yes == 0
}

// bound is the summary of a method value, whose calls leave the receiver out.
func (s *Summary) bound() *Summary {
	b := *s
	b.Wait, b.Clock = s.Wait.bound(), s.Clock.bound()
	b.Sends = withoutReceiver(s.Sends)
	b.Retried = withoutReceiver(s.Retried)
	return &b
}

// bound is the wait of a method value.
func (w *Wait) bound() *Wait {
	if w == nil || w.Param < 0 {
		return w
	}
	b := *w
	b.Param--
	return &b
}

// withoutReceiver moves the parameters that requests mention one to the left.
func withoutReceiver(sends []Send) []Send {
	sends = slices.Clone(sends)
	for i := range sends {
		if sends[i].Param >= 0 {
			sends[i].Param--
		}
	}
	return sends
}

// AddSend notes a request, unless it is known already. Eight are enough: a
// function that sends more is judged by the first.
func (s *Summary) AddSend(snd Send) {
	for _, o := range s.Sends {
		if o.Method == snd.Method && o.Param == snd.Param && o.Keyed == snd.Keyed {
			return
		}
	}
	if len(s.Sends) < 8 {
		s.Sends = append(s.Sends, snd)
	}
}

// Send is one HTTP request that a function sends.
type Send struct {
	Method string // "" when Param says it
	Param  int    // the parameter that holds the method, or -1
	Keyed  bool   // an idempotency key is set on it
	Depth  int    // calls between the function and the request
}

// Wait says that a function waits.
type Wait struct {
	Param int   // the parameter that says how long, or -1
	Class Class // how the wait develops, when Param is -1
	Bare  bool  // the function does nothing else of note
	Tick  bool  // again and again, as a ticker does
}
