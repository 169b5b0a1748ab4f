// Package fact holds what callers need to know of a function: whether it waits,
// what it sends, for which statuses it fails. The facts cross package
// boundaries, and are what the packages that judge waits, requests and statuses
// share.
package fact

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/forbear-go/forbear/lint/internal/codeset"
)

// Summary is what callers need to know of a function. As a fact it crosses
// package boundaries, so that its fields are plain data: the go command stores
// them beside the compiled package. The zero value is a function of which
// nothing is known, or which does nothing of note.
type Summary struct {
	Wait     *Wait
	Clock    *Wait // of a returned channel or timer: when it fires
	Delay    Class // of a returned duration
	Retries  bool  // retries something itself
	Attempts int   // of a Retrier or of Retries; 0 when not known
	// Retrier is set for a function that calls a parameter again, when that fails or
	// until it is done.
	Retrier *Retrier
	// Errors holds the kinds of errors that the function may return: its own
	// types and variables, as a Retrier knows them in its Ends.
	Errors []string
	// Asks holds the kinds of errors that a predicate returns true for, and for
	// no others; AsksNot turns it around.
	Asks    []string
	AsksNot bool
	Sends   []Send
	// Retried holds the requests that the function repeats, itself or by what
	// it calls, although its caller chooses the method.
	Retried []Send
	// Makes says which methods a result carries: of a request that the function
	// builds, or of a type of one's own that becomes one.
	Makes []Send
	// ByMethod is set for predicates that look at the method of a request.
	ByMethod bool
	Remote   bool // crosses an integration boundary
	Local    bool // touches files or processes of the machine
	// Fails holds for which statuses of a response, or codes, the function
	// certainly returns an error.
	Fails codeset.Set
	// Yes and No hold for which ones its first result is certainly true or
	// false.
	Yes, No codeset.Set
	// Guessed says that a setting decides about these, of which only the name or
	// the default is known.
	Guessed bool
	// Status is the result that holds the status of a response, from 1; 0 for none.
	Status int
}

// AFact makes Summary a fact.
func (*Summary) AFact() {}

// String is what analysis drivers print of a fact.
func (s *Summary) String() string {
	return fmt.Sprintf("wait=%v delay=%d retrier=%v retries=%v sends=%v remote=%v fails=%v yes=%v",
		s.Wait != nil, s.Delay, s.Retrier != nil, s.Retries, s.Sends, s.Remote, s.Fails, s.Yes)
}

// Empty reports whether there is nothing for callers to know, so that no fact need
// be stored.
func (s *Summary) Empty() bool { return reflect.ValueOf(*s).IsZero() }

// bound is the summary of a method value, whose calls leave the receiver out.
func (s *Summary) bound() *Summary {
	b := *s
	b.Wait, b.Clock = s.Wait.bound(), s.Clock.bound()
	b.Retrier = s.Retrier.withoutReceiver()
	b.Sends = withoutReceiver(s.Sends)
	b.Retried = withoutReceiver(s.Retried)
	b.Makes = withoutReceiver(s.Makes)
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
// What the receiver holds is not known at such a call.
func withoutReceiver(sends []Send) []Send {
	sends = slices.DeleteFunc(slices.Clone(sends), func(s Send) bool { return s.Param == 0 && s.Outer == 0 })
	for i := range sends {
		if sends[i].Param > 0 && sends[i].Outer == 0 {
			sends[i].Param--
		}
	}
	return sends
}

// AddSend notes a request that the function sends.
func (s *Summary) AddSend(snd Send) { s.Sends = Add(s.Sends, snd) }

// Add adds a request to a list, unless it is there already. Eight are enough: a
// function that sends more is judged by the first.
func Add(list []Send, snd Send) []Send {
	for i, o := range list {
		if o.Method == snd.Method && o.Param == snd.Param && o.Outer == snd.Outer && o.Keyed == snd.Keyed {
			// The way on which it does not only read is the one that counts.
			list[i].Reads = o.Reads && snd.Reads
			list[i].Body = o.Body || snd.Body
			return list
		}
	}
	if len(list) < 8 {
		list = append(list, snd)
	}
	return list
}

// Send is one HTTP request that a function sends.
type Send struct {
	Method string // "" when Param says it
	// Param is the parameter that decides the method, or -1: the method itself,
	// a request, or a value of one's own that carries either.
	Param int
	// Outer says whose parameter it is: of the function itself, or of the one so
	// many levels around a literal, which captures it.
	Outer int
	Keyed bool // an idempotency key is set on it
	Reads bool // names on its way say that it only reads
	Told  bool // of a repetition: it is a finding where it stands
	Body  bool // it may carry a body, as reads do not
	Depth int  // calls between the function and the request
}

// Writes reports whether the method must not be repeated without a key: PUT and
// DELETE are idempotent by RFC 9110 section 9.2.2.
func (s Send) Writes() bool { return s.Method == "POST" || s.Method == "PATCH" }

// Open reports whether the method is for a caller to choose.
func (s Send) Open() bool { return s.Method == "" && s.Param >= 0 }

// Wait says that a function waits.
type Wait struct {
	Param int   // the parameter that says how long, or -1
	Class Class // how the wait develops, when Param is -1
	Bare  bool  // the function does nothing else of note
	Tick  bool  // again and again, as a ticker does
	// Default says that the class is that of what the users may replace.
	Default bool
}
