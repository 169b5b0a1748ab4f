// Package settings reads the settings of forbear's linter, which are the same
// under forbear lint, go vet and golangci-lint:
//
//	confidence: high              # the least that fails, or is reported
//	disable: [FB1054]
//	key_headers: [X-Request-Token]
//	max_attempts: 6
//	retryable: [404, NOT_FOUND]
//	dependencies:
//	- name: search
//	  code: [internal/search/...]
//	  max_attempts: 3
//	  final: [503]
//	waivers:
//	- {id: W-7, rule: R-1, code: [internal/legacy/...], reason: goes with the old vendor, expires: 2027-06-30}
//	libraries:
//	- {package: [example.com/again/...], call: Every, verdict: fixed, message: again.Every waits the same time}
//
// A policy file says the same of its dependencies: forbear lint --policy reads
// it, and forbear lint --policy FILE --print-settings writes what it says in
// this form, for the others.
//
// Experimental: what this package exports may change in any version.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/response"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// FileName is the name under which settings are found.
const FileName = ".forbear-lint.yaml"

// Settings are what a user can set. The zero value holds the defaults. They
// are put in force before any analysis runs, and not changed afterwards.
type Settings struct {
	config.Settings `yaml:",inline"`
	// Libraries judges a user's own retry libraries, in the format of the
	// built-in table.
	Libraries []*table.Entry `yaml:"libraries,omitempty"`
}

// The parts of Settings.
type (
	Base       = config.Settings
	Limits     = config.Limits
	Dependency = config.Dependency
	Pattern    = config.Pattern
	Waiver     = config.Waiver
	Day        = config.Day
)

// Apply puts s in force for this process, instead of what was. The least
// confidence that analyzers report is set too: it is for drivers that know no
// confidences.
func (s *Settings) Apply() error {
	if _, err := s.Least(); err != nil {
		return err
	}
	config.Set(&s.Settings)
	table.Set(s.Libraries)
	return nil
}

// Least returns the least confidence that counts.
func (s *Settings) Least() (rule.Confidence, error) { return rule.Least(&s.Settings) }

// Merge adds what o says where s says nothing; lists are joined, with those of
// s first.
func (s *Settings) Merge(o *Settings) {
	s.Confidence = cmp.Or(s.Confidence, o.Confidence)
	s.MaxAttempts = cmp.Or(s.MaxAttempts, o.MaxAttempts)
	s.Disable = append(s.Disable, o.Disable...)
	s.KeyHeaders = append(s.KeyHeaders, o.KeyHeaders...)
	s.Retryable = append(s.Retryable, o.Retryable...)
	s.Final = append(s.Final, o.Final...)
	s.Dependencies = append(s.Dependencies, o.Dependencies...)
	s.Waivers = append(s.Waivers, o.Waivers...)
	s.Libraries = append(s.Libraries, o.Libraries...)
}

// Check reports what is wrong with settings that were not read by [Parse]; name
// says where they come from.
func (s *Settings) Check(name string) error {
	c := checker{name: name, root: &yaml.Node{}}
	c.check(s)
	return errors.Join(c.errs...)
}

// Responses returns the responses that rules tell apart: statuses and names of
// gRPC codes. Only these can be retryable or final.
func Responses() []string { return response.Names() }

// YAML writes s in the form that [Parse] reads.
func (s *Settings) YAML() ([]byte, error) { return yaml.Marshal(s) }

// Load reads the file of the given name, or else the one that [Discover] finds in dir
// and above. Without either the defaults hold. A file that is named and missing is an
// error.
func Load(name, dir string) (*Settings, error) {
	if name = cmp.Or(name, Discover(dir, FileName)); name == "" {
		return &Settings{}, nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	return Parse(name, src)
}

// Discover looks for a file in dir and the folders above, up to a repository's root; ""
// when there is none. The name is relative to the working directory where the file is
// below it, so that people can read it.
func Discover(dir string, names ...string) string {
	at, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for {
		for _, n := range names {
			name := filepath.Join(at, n)
			if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
				continue
			}
			if wd, err := os.Getwd(); err == nil {
				if r, err := filepath.Rel(wd, name); err == nil && filepath.IsLocal(r) {
					return r
				}
			}
			return name
		}
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil || filepath.Dir(at) == at {
			return ""
		}
		at = filepath.Dir(at)
	}
}
