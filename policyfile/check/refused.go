package check

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
)

// refused turns what the reader refused into findings.
func (r *run) refused(s Source) {
	for _, f := range s.Refused {
		rule := ruleOf(s.File, f)
		found := rule.at(f.Position, cmp.Or(f.Dependency, s.File.Service), "%s", f.Message).keyed(f.Field).degree(degree(s.File, f))
		if f.Value != "" {
			found.value = f.Field + " " + f.Value
		}
		if rule == notJudged && (s.File.Format == "" || f.Rule == "") {
			found.Severity = report.Error // it can be judged: the program refuses a file with it
		}
		r.add(found.in(s, f.Route))
	}
	for _, f := range s.File.Limits {
		found := beyondTheProduct.at(f.Position, s.File.Format, "%s", f.Message).keyed(f.Rule)
		found.Standard = f.Rule
		if all := s.File.All(); len(all) > 0 && all[0].Policy.Kind.Durable() {
			found.Hint = "Let forbear deliver or consume it instead, switch the retries off, or have a waiver signed."
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
	case "total":
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
	if section != "classify" && section != "breaker" {
		section = f.Field
	}
	return cmp.Or(byField[section+" "+f.Rule], byField[section], notJudged)
}
