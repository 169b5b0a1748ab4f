package driver

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/forbear-go/forbear/lint/settings"
)

// Policy is what a policy file says to the linter.
// It is in the linter's own terms, so that this module needs no reader of
// policies.
type Policy struct {
	// Settings hold its dependencies' limits and its valid waivers.
	settings.Settings
	// Notes go to standard error, each with its place: waivers that do not count,
	// and why.
	Notes []string
}

// PolicyReader reads a policy file, and verifies its waivers with a file of
// allowed signers, which may be "". The reader of policy files is no part of
// this module: cmd/forbear has it.
// Without allowed signers, no signature can be verified, and the notes say which
// waivers are lost by that.
type PolicyReader func(name, signers string) (*Policy, error)

// policyName is the name under which policy files are found.
const policyName = "forbear.yaml"

// configure reads the settings and the policy file, as far as there are any,
// and puts them in force. The settings' own word counts more.
// A missing file is an error only when a flag names it. Whether a found policy
// file is meant cannot be known, so --policy none leaves it out.
func (o *options) configure(stderr io.Writer) (*settings.Settings, error) {
	s := &settings.Settings{}
	if name := cmp.Or(o.config, discover(o.dir, settings.FileName)); name != "" {
		var err error
		if s, err = settings.Load(name); err != nil {
			return nil, err
		}
	}
	policy := "none"
	if o.readPolicy != nil {
		policy = cmp.Or(o.policy, discover(o.dir, policyName), policy)
	}
	if policy != "none" {
		p, err := o.readPolicy(policy, o.signers)
		if err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		for _, n := range p.Notes {
			fmt.Fprintln(stderr, "forbear lint:", n)
		}
		s.Merge(&p.Settings)
	}
	if err := s.Apply(); err != nil {
		return nil, err
	}
	return s, nil
}

// printSettings writes settings in the form that they are read in.
func printSettings(set *settings.Settings, stdout io.Writer) error {
	text, err := set.YAML()
	if err == nil {
		_, err = stdout.Write(text)
	}
	return err
}

// discover looks for a file in dir and above, and makes its name relative to the
// working directory, where it is below it; "" when there is none.
// Findings and faults then show a name that a reader can open.
func discover(dir, file string) string {
	name := settings.Discover(dir, file)
	wd, err := os.Getwd()
	if name == "" || err != nil {
		return name
	}
	if r, err := filepath.Rel(wd, name); err == nil && filepath.IsLocal(r) {
		return r
	}
	return name
}

// unusedWaivers reports waivers that have lifted nothing in a whole run.
// It does not fail the run: the code may have been mended, and the waiver can
// go.
func unusedWaivers(s *settings.Settings, stderr io.Writer) {
	for _, w := range s.Waivers {
		if !w.Used() {
			fmt.Fprintf(stderr, "forbear lint: waiver %s lifts nothing: there is no finding of %s in %s until %s\n", w.Name(), w.Rule, patterns(w.Code), w.Expires)
		}
	}
}

// patterns lists patterns for people.
// The result is "" for an empty list.
func patterns(list []settings.Pattern) (text string) {
	for i, p := range list {
		if i > 0 {
			text += ", "
		}
		text += string(p)
	}
	return text
}
