// Package table judges the constructors and options of retry libraries by a
// table: ours, and the user's in the same format.
package table

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Verdict says what an entry means.
// Each belongs to one rule or two, which ask for its entries.
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

// verdicts lists the names that an entry may use.
// The message about a wrong verdict lists them.
func verdicts() []string {
	var names []string
	for _, v := range []Verdict{Fixed, NoJitter, EqualJitter, Unbounded, Attempts, Unkeyed, NonRetryable, RetryClient, BypassedField} {
		names = append(names, string(v))
	}
	return names
}

// Entry judges one thing of one library.
// An entry that is decoded must be compiled before it is used.
type Entry struct {
	// Package lists import paths; one that ends in "/..." covers versions.
	Package []string `yaml:"package"`

	// Exactly one of these says what is judged.
	Call    string `yaml:"call,omitempty"`    // "Func" or "Type.Method", a regular expression
	Value   string `yaml:"value,omitempty"`   // a function used as a value
	Literal string `yaml:"literal,omitempty"` // a composite literal of a struct type
	Field   string `yaml:"field,omitempty"`   // an assignment to "Type.Field"

	Verdict Verdict `yaml:"verdict"`

	// Conditions; all must hold.
	Arg        *int     `yaml:"arg,omitempty"`         // the argument that matters
	Equals     *float64 `yaml:"equals,omitempty"`      // the argument's or the field's constant value
	Missing    string   `yaml:"missing,omitempty"`     // a field that the literal leaves out or sets to zero; of A|B, both
	Present    string   `yaml:"present,omitempty"`     // a field that the literal sets
	Unless     string   `yaml:"unless,omitempty"`      // no call or value of the package that matches, in the same function
	UnlessCall string   `yaml:"unless_call,omitempty"` // the same, of any package
	Requires   string   `yaml:"requires,omitempty"`    // some call or value of the package that matches, in the same function
	// Scope is where the three above are looked for: the function, or with
	// "package" all of the package.
	Scope string `yaml:"scope,omitempty"`

	Confidence string `yaml:"confidence,omitempty"` // default high
	Message    string `yaml:"message"`
	// Fix is what to do instead, where that can be done by itself.
	Fix *Fix `yaml:"fix,omitempty"`
	// Attempts is the number of attempts that a retry client makes.
	Attempts int `yaml:"attempts,omitempty"`

	call, value, unless, unlessCall, requires *regexp.Regexp
	confidence                                rule.Confidence
}

// builtin is the table of the common libraries, in the format of a user's own.
//
//go:embed libraries.yaml
var builtin []byte

var (
	builtins = mustParse(builtin)
	// users is atomic, since analyzers of several packages read it at once.
	users atomic.Pointer[[]*Entry]
)

// mustParse reads the table that is built in, and panics when it is at fault.
// The file is part of the binary, so that a fault in it is one of ours.
func mustParse(b []byte) []*Entry {
	list, err := Parse(b)
	if err != nil {
		panic(err)
	}
	return list
}

// Parse reads entries. Unknown keys and bad entries are errors, all of them
// reported at once.
// An empty table is no error.
func Parse(b []byte) ([]*Entry, error) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	var list []*Entry
	if err := dec.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("library table: %w", err)
	}
	// A user mends the whole file in one go.
	var errs []error
	for i, e := range list {
		if err := e.Compile(); err != nil {
			errs = append(errs, fmt.Errorf("library table: entry %d (%q): %w", i+1, e.Message, err))
		}
	}
	return list, errors.Join(errs...)
}

// Set sets a user's entries, which have been compiled, instead of those set
// before. It must be called before any analysis runs.
// An empty list takes the user's entries away.
func Set(list []*Entry) { users.Store(&list) }

// all returns the built-in entries and the user's.
// Ours come first; an entry of a user adds to them and replaces none.
func all() []*Entry {
	if list := users.Load(); list != nil && len(*list) > 0 {
		return slices.Concat(builtins, *list)
	}
	return builtins
}

// Compile prepares a decoded entry, and returns all its faults at once.
// Patterns match whole names: Do does not match DoWithData.
func (e *Entry) Compile() error {
	var errs []error
	re := func(s string) *regexp.Regexp {
		if s == "" {
			return nil
		}
		r, err := regexp.Compile(`^(?:` + s + `)$`)
		if err != nil {
			errs = append(errs, err)
		}
		return r
	}
	e.call, e.value, e.unless, e.unlessCall, e.requires = re(e.Call), re(e.Value), re(e.Unless), re(e.UnlessCall), re(e.Requires)
	subjects := 0
	for _, s := range []string{e.Call, e.Value, e.Literal, e.Field} {
		if s != "" {
			subjects++
		}
	}
	if subjects != 1 {
		errs = append(errs, errors.New("want exactly one of call, value, literal, field"))
	}
	if e.Scope != "" && e.Scope != "package" {
		errs = append(errs, fmt.Errorf("scope %q is none: want package, or nothing", e.Scope))
	}
	if len(e.Package) == 0 {
		errs = append(errs, errors.New("package is missing"))
	}
	if !slices.Contains(verdicts(), string(e.Verdict)) {
		errs = append(errs, fmt.Errorf("verdict %q is none of %s", e.Verdict, strings.Join(verdicts(), ", ")))
	}
	if strings.TrimSpace(e.Message) == "" {
		errs = append(errs, errors.New("message is missing"))
	}
	if e.Fix != nil {
		errs = append(errs, e.Fix.check())
	}
	e.confidence = rule.High
	if e.Confidence != "" {
		c, err := rule.ParseConfidence(e.Confidence)
		if err != nil {
			errs = append(errs, err)
		}
		e.confidence = c
	}
	return errors.Join(errs...)
}
