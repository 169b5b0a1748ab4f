package fact

import "slices"

// Retrier says how a function calls one of its parameters again. It is what the
// code of a retry helper says about itself, so that no table has to.
// A function that does both retries on a failure.
type Retrier struct {
	Contract Contract
	Param    int    // the parameter that is called again, receivers counted
	Method   string // its method, when it is an interface
	Field    string // its field that holds the function, when it is a struct
	// Delay says how the waits between the attempts develop. When Every is not
	// -1, it is Fixed, and the parameter of that number is waited every time.
	Delay Class
	Every int
	// Default says that Delay is that of what the users may replace.
	Default bool
	// Ends holds the kinds of errors that end the retries, and Only, unless it
	// is empty, those that alone are tried again. A kind is a type or a variable
	// by its full name, or a bool result of the parameter: "#0", "#0=false".
	Ends, Only []string
	// Library is the package whose functions make errors that end the retries,
	// when nothing else is known of the kinds of errors.
	Library string
	// Picky helpers choose what is tried again in a way that is not seen.
	Picky bool
	// Spoken helpers say by their names that they retry.
	Spoken bool
}

// maxKinds bounds how many kinds of errors a fact holds. A function with more
// is no wrapper that marks errors.
const maxKinds = 8

// OtherKinds stands in a list for the kinds that found no room in it. That a kind
// is missing from such a list says nothing.
const OtherKinds = "..."

// AddKind adds a kind of errors to a list that holds each once, up to a limit.
func AddKind(kinds []string, kind string) []string {
	switch {
	case kind == "" || slices.Contains(kinds, kind) || slices.Contains(kinds, OtherKinds):
		return kinds
	case len(kinds) >= maxKinds:
		return append(kinds, OtherKinds)
	}
	return append(kinds, kind)
}

// Limit notes that a helper is picky when its lists have no room for all kinds.
func (r *Retrier) Limit() {
	r.Picky = r.Picky || slices.Contains(r.Ends, OtherKinds) || slices.Contains(r.Only, OtherKinds)
}

// Contract says what makes a helper call its parameter again.
type Contract int

const (
	OnFailure Contract = iota // its error
	// UntilDone helpers call it until it says that it is done. They may wait for a
	// state, so that their waits are their own affair, unless what they are given
	// says "not done" of a failure.
	UntilDone
)

// Join is the retrier of a function with several loops, of which r is one more:
// with and without a limit, for example. What one of them decides counts for
// all, and waits that differ are not known.
func (r *Retrier) Join(o *Retrier) *Retrier {
	if o == nil || o.Contract > r.Contract {
		return r
	}
	j := *o
	j.Ends = slices.Clip(j.Ends)
	if o.Contract != r.Contract || o.Param != r.Param || o.Method != r.Method || o.Field != r.Field {
		return o
	}
	if o.Delay != r.Delay || o.Every != r.Every {
		j.Delay, j.Every = Pluggable, -1
	}
	for _, k := range r.Ends {
		j.Ends = AddKind(j.Ends, k)
	}
	// What any of the loops tries again is tried again.
	j.Only = nil
	if len(o.Only) > 0 && len(r.Only) > 0 {
		for _, k := range slices.Concat(o.Only, r.Only) {
			j.Only = AddKind(j.Only, k)
		}
	}
	j.Picky, j.Spoken, j.Default = o.Picky || r.Picky, o.Spoken || r.Spoken, o.Default || r.Default
	j.Limit()
	return &j
}

// withoutReceiver is the retrier of a method value, whose calls leave the
// receiver out; nil when the receiver itself is what is called.
func (r *Retrier) withoutReceiver() *Retrier {
	if r == nil || r.Param == 0 {
		return nil
	}
	b := *r
	b.Param--
	if b.Every >= 0 {
		b.Every--
	}
	return &b
}
