// Package config holds the settings that analyzers read while they run. They
// are the same under forbear lint, go vet and golangci-lint; the package
// settings reads and checks them.
package config

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Settings are what a user can set. The zero value holds the defaults.
type Settings struct {
	// Confidence is the least that fails forbear lint, and the least that go
	// vet and golangci-lint report: high (the default), medium or low.
	Confidence string `yaml:"confidence,omitempty"`
	// Disable lists rules that report nothing.
	Disable []string `yaml:"disable,omitempty"`
	// KeyHeaders names headers that count as idempotency keys, besides those
	// with "idempoten" in their name.
	KeyHeaders []string `yaml:"key_headers,omitempty"`
	// Limits hold where no dependency's do.
	Limits `yaml:",inline"`
	// Dependencies have limits of their own, for the code that calls them. The
	// first whose paths match counts.
	Dependencies []Dependency `yaml:"dependencies,omitempty"`
	// Waivers lift rules for some code, until a day.
	Waivers []*Waiver `yaml:"waivers,omitempty"`
}

// Limits are what the standard leaves to a dependency.
type Limits struct {
	// MaxAttempts is the largest number of attempts that FB1011 accepts. 0
	// means 11: ten retries, the widest range of the standard.
	MaxAttempts int `yaml:"max_attempts,omitempty"`
	// Retryable lists responses that FB1035 accepts although the standard does
	// not: "404", "NOT_FOUND".
	Retryable []string `yaml:"retryable,omitempty"`
	// Final lists responses that FB1035 does not accept although the standard
	// does: "503".
	Final []string `yaml:"final,omitempty"`
}

// Dependency is one that a service calls.
type Dependency struct {
	Name string `yaml:"name"`
	// Code are the [Pattern]s of the packages that call it.
	Code   []Pattern `yaml:"code"`
	Limits `yaml:",inline"`
}

// Waiver lifts one rule for some code.
type Waiver struct {
	ID string `yaml:"id,omitempty"`
	// Rule is a rule of the standard ("R-1") or of the linter ("FB1001").
	Rule string `yaml:"rule"`
	// Code are the patterns of the packages or files that it covers.
	Code    []Pattern `yaml:"code"`
	Reason  string    `yaml:"reason"`
	Expires Day       `yaml:"expires"`

	used atomic.Bool
}

// Used reports whether the waiver has lifted a finding since it was put in
// force.
func (w *Waiver) Used() bool { return w.used.Load() }

// Name is the waiver's ID, or else its rule.
func (w *Waiver) Name() string {
	return cmp.Or(w.ID, w.Rule)
}

// current holds the settings in force. Analyzers have no other way to be given
// any that go vet, golangci-lint and the driver share.
var current atomic.Pointer[Settings]

// Set puts s in force. It must be called before any analysis runs.
func Set(s *Settings) { current.Store(s) }

// Current returns the settings in force, which must not be changed.
func Current() *Settings {
	if s := current.Load(); s != nil {
		return s
	}
	return &Settings{}
}

// Disabled reports whether a rule is to report nothing.
func (s *Settings) Disabled(rule string) bool {
	return slices.ContainsFunc(s.Disable, func(id string) bool { return strings.EqualFold(id, rule) })
}

// For returns the limits that hold in a file, and the dependency whose they
// are, or "". What the dependency does not set is as everywhere.
func (s *Settings) For(at Place) (Limits, string) {
	l, name := s.Limits, ""
	for i := range s.Dependencies {
		d := &s.Dependencies[i]
		if !slices.ContainsFunc(d.Code, at.in) {
			continue
		}
		name = d.Name
		l.MaxAttempts = cmp.Or(d.MaxAttempts, l.MaxAttempts)
		if len(d.Retryable)+len(d.Final) > 0 {
			l.Retryable, l.Final = d.Retryable, d.Final
		}
		break
	}
	l.MaxAttempts = cmp.Or(l.MaxAttempts, 11)
	return l, name
}

// Lift returns the waiver that lifts one of the given rules in a file, and
// marks it as used; nil when there is none.
func (s *Settings) Lift(at Place, rules ...string) *Waiver {
	for _, w := range s.Waivers {
		if slices.Contains(rules, w.Rule) && w.Expires.Holds(time.Now()) && slices.ContainsFunc(w.Code, at.in) {
			w.used.Store(true)
			return w
		}
	}
	return nil
}

// MayRetry reports whether a response may be retried: a status or the name of a
// gRPC code. standard is what the standard says of it.
func (l Limits) MayRetry(name string, standard bool) bool {
	switch {
	case slices.Contains(l.Final, name):
		return false
	case slices.Contains(l.Retryable, name):
		return true
	}
	return standard
}
