package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/terminal"
)

// The limits of R-6: how long a server keeps keys, how long a consumer
// remembers events, and how long a key may be, in characters.
const (
	minRetention = 24 * time.Hour
	minDedup     = 7 * 24 * time.Hour
	maxKeyLength = 64
)

// dependency judges one policy, beyond what the reader refuses. Each part
// looks at the policy with its defaults: an absent field is a choice too.
func (r *run) dependency(s Source, d *policyfile.Dependency) {
	if s.File.Format != "" {
		// The adapter has refused what its format says. What the format
		// cannot express is no mistake of this file.
		r.tooLong(s, d)
		r.bodyLimit(s, d)
		r.timing(s, d)
		r.classes(s, d)
		if d.Policy.Budget.Window > 0 { // what has none counts otherwise
			r.window(s, d)
		}
		return
	}
	r.budget(s, d)
	r.timing(s, d)
	r.writes(d)
	r.classes(s, d)
	r.durable(d)
	// Adapters are exempt: no proxy's configuration names an owner.
	if d.Policy.Owner == "" {
		r.add(ownerMissing.at(d.At, d.Name, "%s has no retry owner: set owner", d.Name))
	}
	r.breaker(d)
}

// about records a finding about a field of a dependency. Where nothing was written the
// nearest section serves, or the dependency's own line.
func (r *run) about(d *policyfile.Dependency, field string, rule *rule, format string, args ...any) {
	at, _ := d.Place(field)
	r.add(rule.at(at, d.Name, format, args...))
}

// budget judges what the reader cannot: a budget within its range that still
// adds up to more than the standard's over 30 s, or over a whole fleet.
func (r *run) budget(s Source, d *policyfile.Dependency) {
	if d.Policy.Disabled || refuses(s, d, "budget") {
		return
	}
	r.window(s, d)
	b := d.Policy.WithDefaults().Budget
	retries := b.MaxAmplification() - 1
	// The floor is per instance, and a fleet adds it up. The default is the standard's own,
	// and of no interest until the file says how large the fleet is. Durable work is paced
	// by other means.
	if (b.MinRetries > budget.DefaultMinRetries || b.MinRetries > 0 && s.File.Instances > 1) && !d.Policy.Kind.Durable() {
		rate := float64(b.MinRetries) / b.Window.Seconds()
		load := fmt.Sprintf("each instance adds up to %s retries/s (set instances to see the sum)", number(rate))
		// With the number of instances the load can be stated, and a
		// reviewer can accept it.
		if n := s.File.Instances; n > 0 {
			all := float64(b.AllowedEach(n, 0))
			load = fmt.Sprintf("%d instances add up to %s retries/s, %s per window", n, number(rate*float64(n)), number(all))
			if retries > 0 { // which a budget that the reader refused may not have
				load += fmt.Sprintf(": more than %s of their calls while they make fewer than %s per window", percent(retries), number(all/retries))
			}
		}
		at, _ := d.Place("budget.min_retries")
		found := quietClientFloor.at(at, d.Name, "a quiet client of %s may make %d retries in %v beyond the budget's share, and send one call %s times: %s",
			d.Name, b.MinRetries, b.Window, number(b.Worst(attempts(&d.Policy)-1)), load)
		if s.File.Instances > 0 {
			found.Hint = "Set strict: true, share one budget among all instances (forbear serve --fleet-budget, budget.Fleet), or accept the load by a waiver."
		}
		r.add(found)
	}
}

// window judges the time over which a budget is counted. Of a budget that several routes
// share, that is one finding.
func (r *run) window(s Source, d *policyfile.Dependency) {
	if d.Policy.Disabled || refuses(s, d, "budget") {
		return
	}
	b := d.Policy.WithDefaults().Budget
	// The standard's budget is a share of 30 s. A longer window allows the
	// same share, and lets it be spent within those 30 s.
	burst := (b.MaxAmplification() - 1) * max(float64(b.Window)/float64(budget.DefaultWindow), 1)
	standard := 1/(1-budget.DefaultRatio) - 1
	if b.Of == budget.OfInitial {
		standard = budget.DefaultRatio
	}
	// slack forgives the rounding of 0.2 / 0.8, which is no difference in
	// policy.
	const slack = 1e-9
	at, _ := d.Place("budget.window")
	found := retryBudgetWindow.at(at, d.Name, "%s counts its budget over %v instead of 30s", d.Name, b.Window).degree(burst)
	switch {
	case b.Window < budget.DefaultWindow && !refuses(s, d, "budget.window"):
	case burst > standard+slack && b.Window > budget.DefaultWindow:
		found.Message = fmt.Sprintf("%s counts its budget over %v: within 30s retries may be %s of the requests instead of 20%%", d.Name, b.Window, percent(burst))
	default:
		return
	}
	if s.File.Format != "" {
		if slices.ContainsFunc(r.findings, func(f finding) bool {
			return f.rule == found.rule && f.File == at.File && f.Line == at.Line && f.Column == at.Column
		}) {
			return
		}
		found = found.in(s, "")
	}
	r.add(found)
}

// tooLong judges what attempts and waits come to where the software cannot have a total, and
// they are the only bound.
func (r *run) tooLong(s Source, d *policyfile.Dependency) {
	cannot := slices.ContainsFunc(s.File.Limits, func(f *policyfile.Fault) bool { return f.Field == "total.missing" })
	if !cannot || d.Policy.Disabled || d.Policy.Total > 0 {
		return
	}
	if l := worst(s, d); l.Duration < math.MaxInt64 && l.Duration > totalOf(d) {
		at := written(d, "per_attempt", "max_retries")
		r.add(totalDuration.at(at, d.Name, "%s has no total, and its attempts and waits may take %v: set a total of at most %v", d.Name, l.Duration, totalOf(d)).degree(l.Duration.Seconds()).in(s, d.Route))
	}
}

// refuses reports whether the reader has refused that field already, or the
// software has nothing that bounds it: a second finding would only repeat the first.
func refuses(s Source, d *policyfile.Dependency, field string) bool {
	return slices.Contains(d.Lacks, field) || s.refused[refusal{d.Name, d.Route, field}]
}

// timing judges how the durations of a policy go together. Each may be
// within its range while their sum leaves no time for a retry.
func (r *run) timing(s Source, d *policyfile.Dependency) {
	p := d.Policy.WithDefaults()
	// A single retry has one wait: there is nothing that could grow.
	if p.Backoff.Base == p.Backoff.Cap && len(p.Backoff.Schedule) == 0 && p.Retries() > 1 {
		r.add(backoffBase.at(written(d, "backoff.base", "backoff.cap"), d.Name, "%s waits up to %v before every retry: base %v is not below cap %v",
			d.Name, p.Backoff.Cap, p.Backoff.Base, p.Backoff.Cap).in(s, d.Route))
	}
	// That software cannot bound one attempt is said once, and not for each route.
	if p.Disabled || refuses(s, d, "total.missing") || refuses(s, d, "per_attempt") {
		return
	}
	// The finding points at the shorter of the two, which is the one to
	// correct.
	at := written(d, "per_attempt", "total")
	attempt, attempts := p.AttemptTimeout(), attempts(&p)
	// Of software whose total is not hard, what begins within it goes on.
	if d.Longest > p.Total {
		rule := timeoutsDoNotFit
		if attempt < p.Total {
			rule = worstCaseOverTotal
		}
		if attempt >= p.Total || saturated(float64(attempts-1)*float64(attempt)) >= p.Total {
			r.add(rule.at(at, d.Name, "%s may need %v for %d attempts of %v: none starts after %v, but the last one continues, so a call may take %v",
				d.Name, saturated(float64(attempts)*float64(attempt)), attempts, attempt, p.Total, d.Longest).in(s, d.Route))
		}
		return
	}
	if attempt >= p.Total {
		r.add(timeoutsDoNotFit.at(at, d.Name, "one attempt on %s may take %v and the whole call %v: an attempt that hangs leaves no time for a retry", d.Name, attempt, p.Total).in(s, d.Route))
		return
	}
	// The total is hard, so that this is a warning: the last attempts will
	// be missing.
	if raw := unbounded(&d.Policy); raw > p.Total {
		r.add(worstCaseOverTotal.at(at, d.Name, "%s may need %v for %d attempts of %v and their waits, but its total is %v", d.Name, raw, attempts, attempt, p.Total).in(s, d.Route))
	}
}

// written is where the first of the fields was written, or else the other.
func written(d *policyfile.Dependency, field, other string) policyfile.Position {
	at, ok := d.Place(field)
	if !ok {
		at, _ = d.Place(other)
	}
	return at
}

// writes judges whether operations that need a key may be repeated without
// one. GET, PUT and DELETE need none: they are idempotent by method
// (RFC 9110 section 9.2.2).
func (r *run) writes(d *policyfile.Dependency) {
	if d.Policy.RetryUnsent {
		r.about(d, "retry_unsent", retryUnsent, "writes to %s without a key are retried if they were not sent (retry_unsent)", d.Name)
	}
	if d.Policy.Idempotent && !d.Policy.Disabled {
		r.about(d, "idempotent", declaredIdempotent, "%s has idempotent: true, so its writes are repeated without a key", d.Name)
	}
	var writes []string
	for _, m := range d.Methods {
		if m == "POST" || m == "PATCH" {
			writes = append(writes, m)
		}
	}
	_, said := d.Place("idempotency")
	// The library is safe by default; the finding asks that someone has
	// thought of it.
	if len(writes) > 0 && !said && !d.Policy.Disabled && !d.Policy.Idempotent {
		r.about(d, "methods", writeWithoutKey, "%s receives %s, and the file does not say where idempotency keys come from", d.Name, strings.Join(writes, " and "))
	}
	// A position alone is asked for here: where nothing was written, the
	// nearest section serves.
	place := func(field string) policyfile.Position { at, _ := d.Place(field); return at }
	r.keys(d.Keys, "keys", d.Name, d.Name, place)
}

// keys judges what a server promises about idempotency keys. Zero means
// unknown, and is no finding: nothing is known against it.
func (r *run) keys(k policyfile.Keys, section, who, subject string, place func(string) policyfile.Position) {
	if k.MaxLength > maxKeyLength {
		r.add(keyLength.at(place(section+".max_length"), subject, "%s accepts keys of up to %d characters: want at most %d", who, k.MaxLength, maxKeyLength))
	}
	if k.Retention != 0 && k.Retention < minRetention {
		r.add(keyRetention.at(place(section+".retention"), subject, "%s forgets keys after %v: want at least %v", who, k.Retention, minRetention))
	}
}

// never are the failures that R-4 forbids to retry. http_401 may be made
// unauthorized, which leads to a refresh of the token and not to a retry. What R-4 does not
// list may be overridden: the policy says so for all to see.
var never = append(terminal.Labels(), "http_4xx")

// classes judges overrides that make a terminal failure retryable. They are
// walked in the order of their names, since reports are compared between
// runs.
func (r *run) classes(s Source, d *policyfile.Dependency) {
	for _, label := range slices.Sorted(maps.Keys(d.Policy.Classify)) {
		class := d.Policy.Classify[label]
		if !class.Retryable() || !slices.Contains(never, label) {
			continue
		}
		// An override may come from a profile, where this file has no line
		// for it.
		at, ok := d.Place("classify." + label)
		// The finding then points at the dependency, and names the
		// profile.
		from := ""
		if !ok {
			at, from = d.At, " by profile "+d.Profile
		}
		r.add(nonRetryableRetried.at(at, d.Name, "%s retries %s%s: the same request gets the same response", d.Name, label, from).keyed(label).in(s, d.Route))
	}
}

// durable judges where work goes that cannot be done, and how long a
// consumer remembers what it has done.
func (r *run) durable(d *policyfile.Dependency) {
	if !d.Policy.Kind.Durable() {
		return
	}
	what := d.Policy.Kind.String()
	if d.DeadLetter.Queue == "" {
		r.about(d, "dead_letter", deadLetterMissing, "%s %s has no dead-letter queue", what, d.Name)
	}
	if d.DeadLetter.Alert == "" {
		r.about(d, "dead_letter", deadLetterAlertMissing, "dead letters of %s %s raise no alert", what, d.Name)
	}
	// Only a consumer has to remember: a webhook's receiver does that on
	// its own side.
	if d.Policy.Kind != forbear.Event {
		return
	}
	if at, ok := d.Place("dedup"); !ok {
		r.add(dedupWindow.at(d.At, d.Name, "consumer %s does not say how long it remembers events: set dedup", d.Name))
	} else if d.Dedup < minDedup {
		r.add(dedupWindow.at(at, d.Name, "consumer %s forgets events after %v: want at least 7 days", d.Name, d.Dedup))
	}
}

// percent shows a share such as 0.2 as 20%.
func percent(share float64) string { return number(share*100) + "%" }

// number shows a figure with at most two decimals.
func number(v float64) string {
	s := strings.TrimRight(fmt.Sprintf("%.2f", v), "0")
	return strings.TrimSuffix(s, ".")
}

// partialFailure is the share of attempts that fail in the partial failure which a
// breaker is held against. It is that of the simulator's scenario "partial".
const partialFailure = 0.3

// breaker judges the circuit breaker of a dependency: whether it is there, and whether it
// makes an outage of a partial failure that retries would have carried.
func (r *run) breaker(d *policyfile.Dependency) {
	p := d.Policy.WithDefaults()
	switch b := p.Breaker; {
	case b.Disabled:
		r.about(d, "breaker.disabled", breakerOff, "%s has no circuit breaker", d.Name)
	// The first retries alone ask for more than the budget has.
	case b.OnBudget == breaker.BudgetOpens && p.Retries() > 0 && partialFailure > p.Budget.MaxAmplification()-1:
		r.about(d, "breaker.on_budget", breakerSelfInflicted, "if %s of the attempts on %s fail, retries spend the budget, and the spent budget opens the breaker",
			percent(partialFailure), d.Name)
	case b.FailureRate < partialFailure:
		r.about(d, "breaker.failure_rate", breakerSelfInflicted, "if %s of the attempts on %s fail, the breaker opens: its failure_rate is %s",
			percent(partialFailure), d.Name, percent(b.FailureRate))
	}
}
