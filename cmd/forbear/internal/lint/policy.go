package lint

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/cmd/forbear/internal/explain"
	"github.com/forbear-go/forbear/lint/driver"
	"github.com/forbear-go/forbear/lint/settings"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
)

// readPolicy reads a policy file for the linter: the attempts that its kinds
// and policies allow, the responses that its policies retry, the headers of its
// keys, and its waivers as far as they are valid. Patterns are checked last, for
// all dependencies together.
func readPolicy(name, signers string) (*driver.Policy, error) {
	f, err := policyfile.Load(name)
	if err != nil {
		return nil, err
	}
	p := &driver.Policy{}
	p.KeyHeaders = f.Lint.KeyHeaders
	for _, d := range f.All() {
		p.MaxAttempts = max(p.MaxAttempts, widest(&d.Policy))
		if len(f.Lint.Code[d.Name]) == 0 {
			continue
		}
		l, err := limits(&d.Policy)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", d.At, d.Name, err)
		}
		p.Dependencies = append(p.Dependencies, settings.Dependency{Name: d.Name, Code: patterns(f.Lint.Code[d.Name]), Limits: l})
	}
	for i := range f.Waivers {
		if err := addWaiver(f, &f.Waivers[i], signers, p); err != nil {
			return nil, err
		}
	}
	if err := p.Check(name); err != nil {
		return nil, err
	}
	return p, nil
}

// widest returns how many attempts code may make that belongs to no dependency:
// what the kind allows, or what the policy does by a waiver.
func widest(p *forbear.Policy) int {
	// The ranges of kinds are retries, but those of webhooks, which are attempts.
	_, _, high := p.Kind.Range()
	if p.Kind != forbear.Webhook {
		high++
	}
	return max(high, p.Retries()+1)
}

// limits asks the one place that decides what a policy retries, and returns
// where that differs from the standard. The linter knows the standard itself, so
// that a policy without overrides adds nothing.
func limits(p *forbear.Policy) (settings.Limits, error) {
	l := settings.Limits{MaxAttempts: p.Retries() + 1}
	if p.Disabled {
		return l, nil // a single attempt says all
	}
	standard := forbear.Policy{} // its zero value is the standard's defaults
	for _, response := range settings.Responses() {
		here, err := retries(p, response)
		if err != nil {
			return l, err
		}
		usual, err := retries(&standard, response)
		switch {
		case err != nil:
			return l, err
		case here && !usual:
			l.Retryable = append(l.Retryable, response)
		case usual && !here:
			l.Final = append(l.Final, response)
		}
	}
	return l, nil
}

// retries reports whether a policy retries a response: a status or a gRPC code. The
// situation has no history, so that count and deadline never decide.
func retries(p *forbear.Policy, response string) (bool, error) {
	s := explain.New()
	s.ID, s.Base, s.Protocol, s.Code = response, p, "grpc", response
	if status, err := strconv.Atoi(response); err == nil {
		s.Protocol, s.Code, s.Status = "http", "", status
	}
	x, err := explain.Explain(s)
	return x.Decision == "retry", err
}

// addWaiver adds a waiver that is valid, for the code that it names and for
// that of its dependency. Of others it notes why they do not count. The linter
// counts whole days, the last one included; the policy file's end is an instant,
// and excluded.
func addWaiver(f *policyfile.File, w *policyfile.Waiver, signers string, p *driver.Policy) error {
	code := w.CodeIn(f)
	if len(code) == 0 {
		return nil // it is about the policy alone
	}
	faults, err := check.WaiverFaults(f, w, check.Options{AllowedSigners: signers})
	if err != nil {
		return err
	}
	var why []string
	for _, x := range faults {
		why = append(why, fmt.Sprintf("%s [%s]", x.Message, x.ID))
	}
	if len(faults) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s: a waiver does not count: %s", w.At, strings.Join(why, "; ")))
	} else {
		p.Waivers = append(p.Waivers, &settings.Waiver{
			ID: w.ID, Rule: w.Rule, Code: patterns(code), Reason: w.Reason,
			Expires: settings.Day(w.Expires.Add(-time.Nanosecond).UTC().Format(time.DateOnly)),
		})
	}
	return nil
}

// patterns turns the file's patterns into the settings' own type.
func patterns(list []string) (out []settings.Pattern) {
	for _, s := range list {
		out = append(out, settings.Pattern(s))
	}
	return out
}
