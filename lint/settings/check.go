package settings

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/response"
)

var (
	// A header's name is a token of RFC 9110 section 5.6.2.
	headerRE   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	standardRE = regexp.MustCompile(`^R-([1-8]|10)$`)
)

// check judges the values.
func (c *checker) check(s *Settings) {
	if _, err := s.Least(); err != nil {
		c.fault(c.node("confidence"), "%v", err)
	}
	for i, id := range s.Disable {
		if _, ok := lint.Explain(id); !ok {
			c.fault(c.node("disable", i), "rule %q is unknown: forbear lint --rules lists them", id)
		}
	}
	for i, h := range s.KeyHeaders {
		if !headerRE.MatchString(h) {
			c.fault(c.node("key_headers", i), "%q is not the name of a header", h)
		}
	}
	c.limits(&s.Limits)
	for i := range s.Dependencies {
		d := &s.Dependencies[i]
		if d.Name == "" {
			c.fault(c.node("dependencies", i), "a dependency needs a name")
		}
		c.code(d.Code, "dependencies", i)
		c.limits(&d.Limits, "dependencies", i)
	}
	for i, w := range s.Waivers {
		c.waiver(w, "waivers", i)
	}
	for i, e := range s.Libraries {
		if e == nil {
			c.fault(c.node("libraries", i), "an empty entry")
		} else if err := e.Compile(); err != nil {
			for line := range strings.Lines(err.Error()) {
				c.fault(c.node("libraries", i), "libraries: entry %d: %s", i+1, strings.TrimSpace(line))
			}
		}
	}
}

// code checks where a dependency or a waiver counts. It is required, since nothing
// is meant to count everywhere by omission.
func (c *checker) code(list []Pattern, path ...any) {
	if len(list) == 0 {
		c.fault(c.node(path...), "code is missing: write patterns such as internal/payments/...")
	}
	for i, pattern := range list {
		if err := pattern.Check(); err != nil {
			c.fault(c.node(append(path, "code", i)...), "code: %v", err)
		}
	}
}

// limits checks what is said of attempts and responses.
func (c *checker) limits(l *Limits, path ...any) {
	if l.MaxAttempts < 0 {
		c.fault(c.node(append(path, "max_attempts")...), "max_attempts is %d: want at least 1, or leave it out", l.MaxAttempts)
	}
	c.responses("retryable", l.Retryable, path...)
	c.responses("final", l.Final, path...)
	for i, a := range l.Final {
		if slices.Contains(l.Retryable, a) {
			c.fault(c.node(append(path, "final", i)...), "%s is both retryable and final: keep one", a)
		}
	}
}

// responses checks names of responses.
func (c *checker) responses(key string, names []string, path ...any) {
	known := response.Names()
	for i, a := range names {
		if !slices.Contains(known, a) {
			c.fault(c.node(append(path, key, i)...), "%s: %q is not one of these: %s", key, a, strings.Join(known, ", "))
		}
	}
}

// waiver checks a waiver: it names a rule that may be lifted, some code, a reason
// and a last day. Certificates cannot be waived.
func (c *checker) waiver(w *Waiver, path ...any) {
	if w == nil {
		c.fault(c.node(path...), "an empty waiver")
		return
	}
	if _, ok := lint.Explain(w.Rule); !ok && !standardRE.MatchString(w.Rule) {
		why := "want a rule such as R-1 or FB1001"
		if w.Rule == "R-9" {
			why = "R-9 (certificates and credentials) cannot be waived"
		}
		c.fault(c.node(append(path, "rule")...), "rule is %q: %s", w.Rule, why)
	}
	c.code(w.Code, path...)
	if strings.TrimSpace(w.Reason) == "" {
		c.fault(c.node(path...), "a waiver needs a reason")
	}
	if _, err := time.Parse(time.DateOnly, string(w.Expires)); err != nil {
		c.fault(c.node(append(path, "expires")...), "expires is %q: want the last day, such as 2027-06-30", string(w.Expires))
	}
}
