package driver

import (
	"cmp"
	"fmt"
	"io"

	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/settings"
)

// Policy is what a policy file says to the linter. It is in the linter's own terms, so
// that this module needs no reader of policies.
type Policy struct {
	// Settings hold its dependencies' limits and its valid waivers.
	settings.Settings
	// Notes go to standard error, each with its place: waivers that do not count, and
	// why.
	Notes []string
}

// PolicyReader reads a policy file, and verifies its waivers with a file of allowed
// signers, which may be "". Without allowed signers, no signature can be verified, and
// the notes say which waivers are lost by that. cmd/forbear has a reader.
type PolicyReader func(name, signers string) (*Policy, error)

// configure reads the settings and the policy file, as far as there are any, and puts
// them in force. The settings' own word counts more, and that of a flag most. A missing
// file is an error only when a flag names it. Whether a found policy file is meant
// cannot be known, so --policy none leaves it out.
func (o *options) configure(stderr io.Writer) (s *settings.Settings, err error) {
	if s, err = settings.Load(o.config, o.dir); err != nil {
		return nil, err
	}
	if o.readPolicy != nil {
		if name := cmp.Or(o.policy, settings.Discover(o.dir, "forbear.yaml"), "none"); name != "none" {
			p, err := o.readPolicy(name, o.signers)
			if err != nil {
				return nil, fmt.Errorf("policy: %w", err)
			}
			for _, n := range p.Notes {
				fmt.Fprintln(stderr, "forbear lint:", n)
			}
			s.Merge(&p.Settings)
		}
	}
	s.Confidence = cmp.Or(o.confidence, s.Confidence)
	if o.failOn, err = s.Least(); err != nil {
		return nil, err
	}
	// Medium findings are always shown; low ones only when they fail or are asked for.
	o.least = min(rule.Medium, o.failOn)
	if o.all {
		o.least = rule.Low
	}
	return s, s.Apply()
}

// printSettings writes settings in the form that they are read in.
func printSettings(set *settings.Settings, stdout io.Writer) error {
	text, err := set.YAML()
	if err == nil {
		_, err = stdout.Write(text)
	}
	return err
}

// unusedWaivers reports waivers that have lifted nothing in a whole run. It does not
// fail the run: the code may have been fixed, and the waiver can go.
func unusedWaivers(s *settings.Settings, stderr io.Writer) {
	for _, w := range s.Waivers {
		if !w.Used() {
			fmt.Fprintf(stderr, "forbear lint: waiver %s lifts nothing: %[3]s has no finding of %[2]s (until %[4]s)\n", w.Name(), w.Rule, w.Code, w.Expires)
		}
	}
}
