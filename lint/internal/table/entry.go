package table

import (
	"errors"
	"fmt"
	"go/constant"
	"regexp"
	"slices"
	"strings"
)

// Entry judges one thing of one library. A decoded entry must be compiled before
// it is used.
type Entry struct {
	// Package lists import paths; one that ends in "/..." covers versions.
	Package []string `yaml:"package"`

	// Exactly one of these says what is judged, by a regular expression.
	Call    string `yaml:"call,omitempty"`    // a call of "Func" or "Type.Method"
	Value   string `yaml:"value,omitempty"`   // a function used as a value
	Literal string `yaml:"literal,omitempty"` // a composite literal of a struct type
	Field   string `yaml:"field,omitempty"`   // an assignment to "Type.Field"

	Verdict Verdict `yaml:"verdict"`

	// Conditions; all must hold.
	Arg        *int     `yaml:"arg,omitempty"`         // the argument that matters
	Equals     *float64 `yaml:"equals,omitempty"`      // the argument's or the field's constant value
	Missing    string   `yaml:"missing,omitempty"`     // a field that the literal leaves out or sets to zero; of A|B, both
	Present    string   `yaml:"present,omitempty"`     // a field that the literal sets
	Unless     string   `yaml:"unless,omitempty"`      // no name of the package that matches, in the same function
	UnlessCall string   `yaml:"unless_call,omitempty"` // the same, of any package
	Requires   string   `yaml:"requires,omitempty"`    // some name of the package that matches, in the same function
	// Scope is where the three above are looked for: the function, or with
	// "package" all of the package.
	Scope string `yaml:"scope,omitempty"`

	Confidence string `yaml:"confidence,omitempty"` // high (the default), medium or low
	Message    string `yaml:"message"`
	// Attempts is the number of attempts that a retry client makes.
	Attempts int `yaml:"attempts,omitempty"`
	// Fix is refused: what it said is nothing that this version does.
	Fix any `yaml:"fix,omitempty"`

	kind                         kind
	judged                       *regexp.Regexp // the names of what is judged
	unless, unlessCall, requires *regexp.Regexp
}

// Verdict says what an entry means. Each belongs to one rule, which asks for its
// entries.
type Verdict string

const (
	Fixed         Verdict = "fixed"         // FB1001
	NoJitter      Verdict = "no-jitter"     // FB1002
	EqualJitter   Verdict = "equal-jitter"  // FB1003
	Unbounded     Verdict = "unbounded"     // FB1010
	Attempts      Verdict = "attempts"      // FB1011: an argument or field counts attempts
	Unkeyed       Verdict = "unkeyed"       // FB1030
	NonRetryable  Verdict = "non-retryable" // FB1035: arguments are statuses or codes
	RetryClient   Verdict = "retry-client"  // FB1040, FB1050: a client that retries by itself
	BypassedField Verdict = "bypassed"      // FB1050: a field that leads around the retries
)

// verdicts are the names that an entry may use, in the order of the message about
// a wrong one.
var verdicts = []string{
	string(Fixed), string(NoJitter), string(EqualJitter), string(Unbounded), string(Attempts),
	string(Unkeyed), string(NonRetryable), string(RetryClient), string(BypassedField),
}

// kind is a way to use a library.
type kind int

const (
	call kind = iota
	value
	literal
	field
)

// Compile prepares a decoded entry, and returns all its faults at once, so that
// the user can correct all of them. Patterns match whole names: Do does not match
// DoWithData.
func (e *Entry) Compile() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	pattern := func(s string) *regexp.Regexp {
		if s == "" {
			return nil
		}
		re, err := regexp.Compile(`^(?:` + s + `)$`)
		fault(err != nil, "%w", err)
		return re
	}
	subjects := 0
	for k, s := range []string{call: e.Call, value: e.Value, literal: e.Literal, field: e.Field} {
		if s != "" {
			subjects++
			e.kind, e.judged = kind(k), pattern(s)
		}
	}
	e.unless, e.unlessCall, e.requires = pattern(e.Unless), pattern(e.UnlessCall), pattern(e.Requires)
	fault(subjects != 1, "want exactly one of call, value, literal, field")
	fault(e.Scope != "" && e.Scope != "package", "scope %q is unknown: want package, or leave it out", e.Scope)
	fault(len(e.Package) == 0, "package is missing")
	fault(!slices.Contains(verdicts, string(e.Verdict)), "verdict %q is unknown: want one of %s", e.Verdict, strings.Join(verdicts, ", "))
	fault(e.Fix != nil, "fix is no longer supported: leave it out")
	fault(strings.TrimSpace(e.Message) == "", "message is missing")
	fault(!slices.Contains([]string{"", "low", "medium", "high"}, e.Confidence), "confidence %q is unknown: want low, medium or high", e.Confidence)
	return errors.Join(errs...)
}

// Covers reports whether e is about the package with the given path. A pattern
// never matches in the middle of a path element: a/b/... does not cover a/bc.
func (e *Entry) Covers(path string) bool {
	return slices.ContainsFunc(e.Package, func(p string) bool {
		root, below := strings.CutSuffix(p, "/...")
		return path == root || below && strings.HasPrefix(path, root+"/")
	})
}

// Name names what e judges, whatever the code calls the package.
func (e *Entry) Name() string { return e.Package[0] + "." + e.Call + e.Value + e.Literal + e.Field }

// equals reports whether a constant is the one that e asks for, if any. A value
// that is computed at run time is no match, since it may be any.
func (e *Entry) equals(v constant.Value) bool {
	if e.Equals == nil {
		return true
	}
	if v == nil {
		return false
	}
	if v.Kind() == constant.Bool { // false is 0
		return constant.BoolVal(v) == (*e.Equals != 0)
	}
	f, ok := constant.Float64Val(constant.ToFloat(v))
	return ok && f == *e.Equals
}
