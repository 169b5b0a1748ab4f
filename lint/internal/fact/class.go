package fact

// Class says how a wait develops from one attempt to the next. Of several waits
// the greater class counts, so the order is one of care: a loop that is random
// on one path is not reported for another.
type Class int

// The classes, from the one that says least.
const (
	Pluggable   Class = iota // decided elsewhere: no judgment
	Immediate                // no wait at all
	Fixed                    // the same every time
	Growing                  // grows, without randomness
	EqualJitter              // half fixed, half random
	Jittered                 // random
	Server                   // named by the server
)

// String says it as a sentence goes on: "its wait is ...".
func (c Class) String() string {
	return [...]string{"decided elsewhere", "none", "the same every time", "growing without randomness", "half random", "random", "named by the server"}[c]
}
