package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Position is a place in a file. Lines and columns count from 1.
type Position struct {
	File   string
	Line   int
	Column int
}

// String returns "file:line:column".
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Fault is one thing that is wrong with a file.
type Fault struct {
	Position
	// Rule is the rule of the standard that the file breaks, such as "R-2", or
	// "" for a file that makes no sense.
	Rule    string
	Message string
	// Dependency and Field name what breaks the rule, as in "payments" and
	// "backoff.cap". They are set together with Rule.
	Dependency, Field string
	// Route is that of the dependency, and Value what a field of other software
	// has, where it leaves a range.
	Route, Value string
	// Uncertain says that it depends on what no file says, such as the version of
	// other software, or whether a service has such failures. Its finding is one level lower.
	Uncertain bool
}

// Error returns "file:line:column: message (rule)".
func (f *Fault) Error() string {
	if f.Rule == "" {
		return fmt.Sprintf("%s: %s", f.Position, f.Message)
	}
	return fmt.Sprintf("%s: %s (%s)", f.Position, f.Message, f.Rule)
}

// Error holds all faults of a file, in the order of the file.
type Error struct {
	Faults []*Fault
	// More counts the faults beyond the first hundred, which are not kept.
	More int
}

// Error returns one line for each fault.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Faults)+1)
	for _, f := range e.Faults {
		lines = append(lines, f.Error())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("%d more faults: fix those above first", e.More))
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find each fault.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Faults))
	for i, f := range e.Faults {
		errs[i] = f
	}
	return errs
}

// maxFaults bounds what one hopeless file makes us report. Ten times as many
// are kept before sorting, so that those reported are the first in the order
// of the file.
const (
	maxFaults = 100
	maxKept   = 10 * maxFaults
)

// Fault records that something at n is wrong.
func (r *Reader) Fault(n *yaml.Node, format string, args ...any) {
	r.FaultAt(r.At(n), format, args...)
}

// FaultAt records a fault at a position, and returns it for what more is known of it.
// Those beyond maxKept are counted only.
func (r *Reader) FaultAt(at Position, format string, args ...any) *Fault {
	f := &Fault{Position: at, Message: fmt.Sprintf(format, args...)}
	if len(r.Faults) >= maxKept {
		r.More++
		return f
	}
	r.Faults = append(r.Faults, f)
	return f
}

// Count is how many faults there are: a reader of several keys compares them with each
// other only when it has not grown.
func (r *Reader) Count() int { return len(r.Faults) + r.More }

// Err returns the faults in the order of the file, each once. An alias makes
// the same node appear in several places, and its faults with it.
func (r *Reader) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.Faults, func(a, b *Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	faults := slices.CompactFunc(r.Faults, func(a, b *Fault) bool { return a.Position == b.Position && a.Message == b.Message && a.Rule == b.Rule })
	e := &Error{Faults: faults, More: r.More}
	if over := len(faults) - maxFaults; over > 0 {
		e.Faults, e.More = faults[:maxFaults], r.More+over
	}
	return e
}

// Quote shows a value of the file in a message: at most 40 characters, and
// on one line.
func Quote(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return fmt.Sprintf("%q", s)
}
