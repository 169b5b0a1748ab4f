package check

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
)

// refused turns what the reader refused into findings.
func (r *run) refused(s Source) {
	for _, f := range s.Refused {
		if f.Field == "total.missing" && r.bounded(s, f) {
			continue
		}
		rule := ruleOf(s.File, f)
		found := rule.at(f.Position, cmp.Or(f.Dependency, s.File.Service), "%s", f.Message).keyed(f.Field).degree(degree(s.File, f))
		if f.Value != "" {
			found.value = f.Field + " " + f.Value
		}
		if rule == notJudged && (s.File.Format == "" || f.Rule == "") {
			found.Severity = report.Error // it can be judged: the program refuses a file with it
		}
		if f.Uncertain && found.Severity > report.Note {
			found.Severity-- // of an error, a warning
		}
		r.add(found.in(s, f.Route))
	}
	for _, f := range s.File.Limits {
		found := beyondTheProduct.at(f.Position, s.File.Format, "%s", f.Message).keyed(f.Rule)
		found.Standard = f.Rule
		if all := s.File.All(); len(all) > 0 && all[0].Policy.Kind.Durable() {
			found.Hint = "Let forbear deliver or consume it instead, turn the retries off, or have a waiver signed."
		}
		r.add(found)
	}
	for _, f := range s.File.Unjudged {
		r.add(notJudged.at(f.Position, f.Dependency, "%s", f.Message).keyed(f.Message))
	}
	if f := s.File.Unread; f != nil {
		r.add(unreadSetting.at(f.Position, "", "%s", f.Message).keyed(f.Message))
	}
}

// silences are the software whose time-outs bound the time between two reads: what comes
// slowly has no bound.
var silences = []string{"nginx", "ingressnginx"}

// bounded reports whether attempts and waits bound the calls that have no total, to no more
// than a total may be.
func (r *run) bounded(s Source, f *policyfile.Fault) bool {
	found := false
	for _, d := range s.File.All() {
		if d.Name != f.Dependency || d.Route != f.Route {
			continue
		}
		l := worst(s, d)
		if l.longer || d.AtLeast || l.Duration > totalOf(d) || slices.Contains(d.Lacks, "backoff.cap") {
			return false
		}
		found = true
	}
	return found && s.File.Format != "" && !slices.Contains(silences, s.File.Format)
}

// totalOf is the longest that a call of its kind may take.
func totalOf(d *policyfile.Dependency) time.Duration {
	return (&forbear.Policy{Kind: d.Policy.Kind}).WithDefaults().Total
}

// degree returns the value of a field of which more is worse, or 0 for another fault.
func degree(file *policyfile.File, f *policyfile.Fault) float64 {
	value := f.Value
	if d, ok := file.Dependency(f.Dependency); ok && file.Format == "" {
		value = d.Value(f.Field)
	}
	switch f.Field {
	case "max_retries", "max_attempts":
		n, _ := strconv.Atoi(value)
		return float64(n)
	case "total", "budget.interval":
		d, _ := time.ParseDuration(value)
		return d.Seconds()
	case "budget.ratio":
		percent, _ := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
		return percent
	}
	return 0
}

// byField are the rules by the field that breaks them. Where one field may break
// several rules of the standard, that stands behind it; a section stands for its fields.
var byField = map[string]*rule{
	"budget":                retryBudgetMissing,
	"budget.ratio":          retryBudgetTooLarge,
	"budget.max_multiplier": retryBudgetTooLarge,
	"budget.window":         retryBudgetOutlived,
	"budget.interval":       retryBudgetTooLarge,
	"backoff.cap R-7":       retryBudgetOutlived,
	"budget.min_retries":    strictContradicted,
	"budget.round_up":       strictContradicted,
	"max_retries":           retryCount,
	"max_attempts":          retryCount,
	"total":                 totalDuration,
	"backoff.cap":           backoffCap,
	"backoff.base":          backoffBase,
	"backoff.jitter":        jitter,
	"backoff.schedule":      schedule,
	"total.missing":         totalMissing,
	"retry_after":           retryAfterIgnored,
	"methods":               writeWithoutKey,
	"idempotency.retention": keyRetention,
	"classify":              nonRetryableRetried,
	"unlisted":              unlistedRetried,
	"word":                  unknownWord,
	"dead_letter":           deadLetterMissing,
	"tls.verify":            tlsVerificationOff,
	"url":                   secretInClear,
	"secret":                secretInClear,

	"credentials.secret":        secretInClear,
	"credentials.client_secret": secretInClear,
	"credentials.token_url":     secretInClear,
	"health.endpoint":           secretInClear,

	"classify R-9": certificateRetried,
	"breaker":      breakerFloor,
	"waivers.rule": waiverOfTheUnwaivable,
}

// ruleOf returns the rule of what the reader refused. What has none of its own is
// notJudged, so that it is shown all the same.
func ruleOf(file *policyfile.File, f *policyfile.Fault) *rule {
	if d, ok := file.Dependency(f.Dependency); ok && f.Field == "budget.min_retries" && !d.Policy.Strict {
		return quietClientFloorHigh // nothing contradicts it: it is too high
	}
	section, _, _ := strings.Cut(f.Field, ".")
	if !slices.Contains([]string{"classify", "breaker", "unlisted", "word"}, section) {
		section = f.Field
	}
	return cmp.Or(byField[section+" "+f.Rule], byField[section], notJudged)
}
