package forbear

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/internal/waitform"
)

// Violation is one way in which a policy leaves the standard.
type Violation struct {
	Field  string // as in a policy file: "backoff.cap"
	Rule   string // "R-2", or "" for a value that makes no sense at all
	Detail string
}

// Error returns "max_retries 9 is outside 1-5 (R-2)".
func (v *Violation) Error() string {
	if v.Rule == "" {
		return v.Field + " " + v.Detail
	}
	rule := v.Rule
	if rule == breaker.Rule {
		rule += ", the standard on circuit breakers" // its number says nothing, and a waiver needs it
	}
	return v.Field + " " + v.Detail + " (" + rule + ")"
}

// Waiver lifts one rule for one dependency, visibly. Rules about certificates
// and values that make no sense cannot be waived.
type Waiver struct {
	Rule       string
	Dependency string
	Reason     string
	Expires    time.Time // zero: never
}

func (w Waiver) covers(v *Violation, dependency string, now time.Time) bool {
	return v.Rule != "" && v.Rule != "R-9" && w.Rule == v.Rule && w.Dependency == dependency &&
		w.Reason != "" && (w.Expires.IsZero() || now.Before(w.Expires))
}

// Validate returns all the ways in which p leaves the standard, joined, or nil: it
// is an error with a method Unwrap() []error, and each of those is a [*Violation].
func (p *Policy) Validate() error {
	var errs []error
	for _, v := range p.violations() {
		errs = append(errs, v)
	}
	return errors.Join(errs...)
}

// violations lists what Validate joins.
func (p *Policy) violations() []*Violation {
	var c checker
	if int(p.Kind) >= len(kinds) {
		c.add("kind", "", "%d is unknown", p.Kind)
		return c.found
	}
	c.counts(p)
	c.durations(p)
	c.backoff(p)
	c.budget(p)
	p.Breaker.Check(c.add)
	p.Health.Check(c.add)
	if p.MaxConcurrent < 0 {
		c.add("max_concurrent", "", "%d is negative", p.MaxConcurrent)
	}
	switch p.Keys {
	case "", KeyReuse, KeyGenerate, KeyRefuse:
	default:
		c.add("idempotency", "R-6", "%q is unknown: want reuse, generate or refuse", p.Keys)
	}
	c.classes(p)
	c.waits(p)
	return c.found
}

type checker struct{ found []*Violation }

func (c *checker) add(field, rule, format string, args ...any) {
	c.found = append(c.found, &Violation{Field: field, Rule: rule, Detail: fmt.Sprintf(format, args...)})
}

func (c *checker) counts(p *Policy) {
	_, low, high := p.Kind.Range()
	field, value, other, wrong := "max_retries", p.MaxRetries, "max_attempts", p.MaxAttempts
	if p.Kind == Webhook {
		field, value, other, wrong = other, wrong, field, value
	}
	if wrong != 0 {
		c.add(other, "", "does not apply to kind %s: set %s instead", p.Kind, field)
	}
	if value != 0 && p.Disabled {
		c.add(field, "", "%d contradicts disabled: set one of the two", value)
	} else if value < 0 {
		c.add(field, "", "%d is negative", value)
	} else if value != 0 && (value < low || value > high) {
		c.add(field, "R-2", "%d is outside %d-%d", value, low, high)
	}
}

func (c *checker) durations(p *Policy) {
	q := p.WithDefaults()
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"total", p.Total}, {"per_attempt", p.PerAttempt}, {"connect", p.Connect}, {"min_attempt", p.MinAttempt}} {
		if f.value < 0 {
			c.add(f.name, "", "%v is negative", f.value)
		} else if f.value != 0 && f.value < time.Microsecond {
			c.add(f.name, "", "%v is shorter than any call: is the unit missing, as in %d*time.Second?", f.value, f.value)
		}
	}
	if limit := p.Kind.limits().total; p.Total > limit {
		c.add("total", "R-3", "%v is over %v for kind %s", p.Total, limit, p.Kind)
	}
	if q.Total > 0 && q.MinAttempt >= q.Total {
		c.add("min_attempt", "", "%v leaves no room in a total of %v: lower it, or raise total", q.MinAttempt, q.Total)
	}
}

// maxCap is the longest backoff that a caller may be kept waiting in memory.
const maxCap = 60 * time.Second

func (c *checker) backoff(p *Policy) {
	b := p.Backoff
	q := p.WithDefaults().Backoff
	if b.Base < 0 {
		c.add("backoff.base", "", "%v is negative", b.Base)
	}
	if b.Cap < 0 {
		c.add("backoff.cap", "", "%v is negative", b.Cap)
	} else if b.Cap > maxCap && !p.Kind.Durable() {
		c.add("backoff.cap", "R-1", "%v is over %v", b.Cap, maxCap)
	}
	if b.Base > 0 && q.Cap > 0 && b.Base > q.Cap {
		c.add("backoff.base", "R-1", "%v is over the cap of %v", b.Base, q.Cap)
	} else if b.Base > maxCap && !p.Kind.Durable() {
		c.add("backoff.base", "R-1", "%v is over %v", b.Base, maxCap)
	}
	switch b.Jitter {
	case "", JitterFull, JitterDecorrelated:
	default:
		c.add("backoff.jitter", "R-1", "%q is unknown: want full or decorrelated", b.Jitter)
	}
	if len(b.Schedule) == 0 {
		return
	}
	if b.Jitter == JitterDecorrelated {
		c.add("backoff.jitter", "", "decorrelated cannot be combined with a schedule: drop one of the two")
	}
	if need := p.Retries() + 1; len(b.Schedule) < need {
		c.add("backoff.schedule", "R-3", "has %d steps for %d attempts: add steps, or lower the count", len(b.Schedule), need)
	}
	for i, step := range b.Schedule {
		if step < 0 || i > 0 && step <= b.Schedule[i-1] {
			c.add("backoff.schedule", "R-3", "does not increase at step %d (%v): each step must be longer than the one before", i+1, step)
			return
		}
	}
}

func (c *checker) budget(p *Policy) {
	b := p.Budget
	if b.MaxMultiplier != 0 && b.Ratio != 0 {
		c.add("budget.max_multiplier", "", "and budget.ratio say the same thing: set only one")
	}
	if b.MaxMultiplier != 0 && b.Of != budget.OfInitial {
		c.add("budget.max_multiplier", "", "always counts initial requests: drop budget.of")
	}
	// Each range is asked for, and not what is outside: NaN is in none.
	if !(b.Ratio >= 0 && b.Ratio <= 1) {
		c.add("budget.ratio", "", "%v is not a fraction: want 0 to 1, such as 0.2", b.Ratio)
	} else if b.Ratio > budget.DefaultRatio {
		c.add("budget.ratio", "R-7", "%s is over 20%%", label.Percent(b.Ratio))
	}
	// 1.25 is what 20 % of the total comes to, the weakest reading of R-7.
	if b.MaxMultiplier != 0 && !(b.MaxMultiplier >= 1 && b.MaxMultiplier <= 10) {
		c.add("budget.max_multiplier", "", "%v is not in 1-10", b.MaxMultiplier)
	} else if b.MaxMultiplier > 1/(1-budget.DefaultRatio) {
		c.add("budget.max_multiplier", "R-7", "%v is over 1.25, which is 20%% of the total", b.MaxMultiplier)
	}
	if b.MinRetries < 0 {
		c.add("budget.min_retries", "", "%d is negative", b.MinRetries)
	} else if b.MinRetries > 0 && p.Strict {
		c.add("budget.min_retries", "R-7", "%d contradicts strict: set one of the two", b.MinRetries)
	} else if b.MinRetries > budget.MaxMinRetries {
		c.add("budget.min_retries", "R-7", "%d is over %d", b.MinRetries, budget.MaxMinRetries)
	}
	if b.RoundUp && p.Strict {
		c.add("budget.round_up", "R-7", "contradicts strict: set one of the two")
	}
	q := p.WithDefaults()
	switch {
	case b.Window < 0 || b.Window > time.Hour:
		c.add("budget.window", "", "%v is not in 0-1h, such as 30s", b.Window)
	case !p.Kind.Durable() && b.Window > 0 && b.Window < q.Backoff.Cap:
		c.add("budget.window", "R-7", "%v is shorter than the backoff cap of %v, so retries would outlive their window: raise it, or lower backoff.cap", b.Window, q.Backoff.Cap)
	case !p.Kind.Durable() && b.Window == 0 && q.Backoff.Cap > q.Budget.Window:
		field, note := "backoff.cap", ""
		if p.Backoff.Cap == 0 { // its default follows the base, which the reader has written
			field, note = "backoff.base", fmt.Sprintf(" (and over the default of backoff.cap, %v)", defaultCap)
		}
		c.add(field, "R-7", "%v is longer than the budget window of %v%s, so retries would outlive their window: lower it, or raise budget.window", q.Backoff.Cap, q.Budget.Window, note)
	}
}

func (c *checker) classes(p *Policy) {
	for label, class := range p.Classify {
		switch {
		case label == errtype.Certificate || !class.overridable() && class <= ClassCanceled:
			c.add("classify."+label, "R-9", "cannot be %s: certificate errors and cancellations are never reclassified", class)
		case class > ClassCanceled:
			c.add("classify."+label, "", "has an unknown class")
		case !isStatus(label):
			c.add("classify."+label, "", "names no HTTP status: want http_404, or http_4xx for a group")
		}
	}
}

// isStatus refuses a label that begins as one of HTTP does, and is none. Other labels
// may be those of a program's own classifiers.
func isStatus(label string) bool {
	status, ok := strings.CutPrefix(label, "http_")
	return !ok || status == "invalid" || len(status) == 3 && status[0] >= '1' && status[0] <= '9' && (status[1:] == "xx" || strings.Trim(status[1:], "0123456789") == "")
}

// maxWaitHeaders bounds the headers of one policy: each is looked for on every failure.
const maxWaitHeaders = 16

func (c *checker) waits(p *Policy) {
	if n := len(p.WaitHeaders); n > maxWaitHeaders {
		c.add("wait_headers", "", "names %d headers: want at most %d", n, maxWaitHeaders)
		return
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.WaitHeaders)) {
		field, lower := "wait_headers."+name, strings.ToLower(name)
		switch form := p.WaitHeaders[name]; {
		case !isHeader(name):
			c.add("wait_headers", "", "%q is not the name of a header: want letters, digits, '-', '_' and '.', at most 64", name[:min(len(name), 64)])
		case lower == "retry-after" || lower == "retry-after-ms":
			c.add(field, "", "is always read first: leave it out")
		case seen[lower]:
			c.add(field, "", "appears twice, in different case: header names ignore case")
		case !slices.Contains(waitform.Names, form):
			c.add(field, "", "has the unknown form %q: want one of %v", form[:min(len(form), 64)], waitform.Names)
		}
		seen[lower] = true
	}
}

// isHeader reports whether s is the name of a header as servers write it: RFC 9110
// section 5.6.2 allows more characters, which no one uses.
func isHeader(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
