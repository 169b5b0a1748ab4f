package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
)

// Verdict is the verdict on a review question. The zero value is Unknown: a
// question that cannot be decided from these files does not count as a yes.
type Verdict uint8

// The verdicts.
const (
	Unknown Verdict = iota
	No
	Yes
)

// String returns yes, no or cannot judge.
func (v Verdict) String() string { return [...]string{"cannot judge", "no", "yes"}[min(v, Yes)] }

// MarshalText implements [encoding.TextMarshaler].
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Answer is a review question with its verdict and the evidence: places in
// files, a simulated run, or a scraped metric.
type Answer struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Verdict  Verdict  `json:"verdict"`
	Evidence []string `json:"evidence"`
}

// question is one question and the method that decides it. Several questions
// of the two lists ask for the same thing and share a method.
type question struct {
	id, text string
	judge    func(*review) (Verdict, []string)
}

// questions holds the eleven questions before retries are enabled, and the
// six of a review of retry settings. Their ids appear in reports, and so
// never change.
var questions = []question{
	{"budgets-1", "Does one layer clearly own the retry?", (*review).owned},
	{"budgets-2", "Is there a per-request attempt limit?", (*review).bounded},
	{"budgets-3", "Is there a fleet/client retry ratio or token bucket?", (*review).budgeted},
	{"budgets-4", "Are side-effecting operations protected by idempotency?", (*review).keyed},
	{"budgets-5", "Are retryable and non-retryable failures separated?", (*review).classified},
	{"budgets-6", "Does overload produce a response that clients know not to hammer?", (*review).obedient},
	{"budgets-7", "Does backoff include jitter?", (*review).jittered},
	{"budgets-8", "Are retries counted separately from initial requests?", (*review).counted},
	{"budgets-9", "Can you see budget exhaustion?", (*review).exhaustion},
	{"budgets-10", "Can you show that retries improve success rate during normal transient failures?", (*review).helps},
	{"budgets-11", "Can you show that retries stop during overload?", (*review).stops},
	{"config-1", "Is the retryable status-code set explicit and correct?", (*review).classified},
	{"config-2", "Is every retried endpoint idempotent, by method or by key?", (*review).keyed},
	{"config-3", "Is full jitter applied, with differing waits in ten runs of the formula?", (*review).jittered},
	{"config-4", "Is there a cap on attempts (at most 5 in memory) and on the delay (at most 60 s)?", (*review).capped},
	{"config-5", "Is Retry-After read and honored as a floor?", (*review).obedient},
	{"config-6", "Is there a fleet-level retry budget?", (*review).budgeted},
}

// review holds what the verdicts rest on.
type review struct {
	// deps are the dependencies of policy files; foreign counts those of
	// other configurations, which are not judged here.
	deps    []*policyfile.Dependency
	foreign int
	result  *Result
	// metrics holds the names of a scrape, or is nil without one.
	metrics   map[string]bool
	metricsAt string
	silent    []string // where metrics are switched off
	// minutes are the simulated minutes, one for each share of failing attempts.
	minutes map[*policyfile.Dependency]minutes
}

// Checklist decides the review questions for the sources. result is what
// [Run] found in them. metrics holds the names of the metrics scraped from
// the address at, and is nil when nothing was scraped.
func Checklist(sources []Source, result *Result, metrics map[string]bool, at string) []Answer {
	v := &review{result: result, metrics: metrics, metricsAt: at}
	for _, s := range sources {
		if s.File.Format != "" {
			v.foreign += len(s.File.All())
			continue
		}
		v.deps = append(v.deps, s.File.All()...)
		if s.File.Observability.NoMetrics {
			v.silent = append(v.silent, s.File.Place("observability.metrics").String())
		}
	}
	if v.foreign == 0 {
		v.minutes = simulateMinutes(v.deps)
	}
	answers := make([]Answer, 0, len(questions))
	for _, q := range questions {
		a := Answer{ID: q.id, Question: q.text}
		switch {
		// Any foreign file makes the verdict unknown: the budget or owner
		// may be in a layer that is not shown.
		case v.foreign > 0:
			a.Evidence = []string{fmt.Sprintf("%d policies are configuration of others, whose behavior is not known here", v.foreign)}
		case len(v.deps) == 0:
			a.Evidence = []string{"no dependency in these files"}
		default:
			a.Verdict, a.Evidence = q.judge(v)
		}
		answers = append(answers, a)
	}
	return answers
}

// found returns the places of the findings of the given ids, waived ones
// included: a waiver lifts a gate, and does not turn a no into a yes.
func (v *review) found(ids ...string) (at []string) {
	for _, f := range v.result.Findings {
		if slices.Contains(ids, f.ID) {
			at = append(at, fmt.Sprintf("%s:%d: %s [%s]", f.File, f.Line, f.Message, f.ID))
		}
	}
	return at
}

// each collects a piece of evidence from every dependency, so that a
// reviewer sees what a yes rests on.
func (v *review) each(say func(d *policyfile.Dependency) string) (evidence []string) {
	for _, d := range v.deps {
		evidence = append(evidence, say(d))
	}
	return evidence
}

// unless answers no where one of the findings was made, and yes with the evidence of
// every dependency otherwise.
func (v *review) unless(ids []string, say func(d *policyfile.Dependency) string) (Verdict, []string) {
	if bad := v.found(ids...); bad != nil {
		return No, bad
	}
	return Yes, v.each(say)
}

// place says where a field was written, or that its default applies.
func place(d *policyfile.Dependency, field string) string {
	at, ok := d.Place(field)
	if ok {
		return at.String()
	}
	return d.At.String() + " (by default)"
}

// owned decides whether each dependency has exactly one owner of its
// retries: two layers that retry multiply.
func (v *review) owned() (Verdict, []string) {
	return v.unless([]string{"FC501", "FC502", "FC503"}, func(d *policyfile.Dependency) string {
		return fmt.Sprintf("%s: %s is retried by %s", place(d, "owner"), d.Name, d.Policy.Owner)
	})
}

// bounded decides whether attempts and time are bounded.
func (v *review) bounded() (Verdict, []string) {
	return v.unless([]string{"FC201", "FC209"}, func(d *policyfile.Dependency) string {
		field := "max_retries"
		if d.Policy.Kind == forbear.Webhook {
			field = "max_attempts"
		}
		return fmt.Sprintf("%s: at most %d attempts on %s", place(d, field), attempts(&d.Policy), d.Name)
	})
}

// budgeted decides whether a budget bounds the retries of all calls together
//
func (v *review) budgeted() (Verdict, []string) {
	return v.unless([]string{"FC101", "FC102", "FC104", "FC106"}, func(d *policyfile.Dependency) string {
		b := d.Policy.WithDefaults().Budget
		return fmt.Sprintf("%s: retries on %s are at most %s of %s requests over %v", place(d, "budget"), d.Name, percent(b.Ratio), b.Of, b.Window)
	})
}

// keyed decides whether writes are safe to repeat. A file that names
// neither methods nor keys leaves that open: Unknown, and not a no.
func (v *review) keyed() (Verdict, []string) {
	if bad := v.found("FC301", "FC302", "FC303"); bad != nil {
		return No, bad
	}
	verdict := Yes
	// One unclear dependency makes the whole question unclear.
	evidence := v.each(func(d *policyfile.Dependency) string {
		switch {
		case d.Policy.Kind.Durable():
			return fmt.Sprintf("%s: %s carries one id for all deliveries", d.At, d.Name)
		case d.Policy.Disabled:
			return fmt.Sprintf("%s: %s is not retried", place(d, "disabled"), d.Name)
		}
		if d.Policy.Idempotent {
			return fmt.Sprintf("%s: every operation of %s is said to be idempotent", place(d, "idempotent"), d.Name)
		}
		// Only a written value counts: a default does not show that anyone
		// has decided.
		if _, said := d.Place("idempotency"); said {
			return fmt.Sprintf("%s: writes to %s are retried with a key alone", place(d, "idempotency"), d.Name)
		}
		if at, said := d.Place("methods"); said {
			return fmt.Sprintf("%s: %s is only sent %s", at, d.Name, strings.Join(d.Methods, ", "))
		}
		verdict = Unknown
		return fmt.Sprintf("%s: %s says neither its methods nor who brings keys", d.At, d.Name)
	})
	return verdict, evidence
}

// classified decides whether R-4's terminal failures stay terminal.
func (v *review) classified() (Verdict, []string) {
	return v.unless([]string{"FC306", "FC604"}, func(d *policyfile.Dependency) string {
		return fmt.Sprintf("%s: %s retries what R-4 lists, and its overrides make none of 400, 401, 403, 404, 409 and 422 retryable", place(d, "classify"), d.Name)
	})
}

// obedient tries a throttled response on the policy itself: a short
// Retry-After has to be waited out, and one beyond the total has to end the
// call. A setting could not show either.
func (v *review) obedient() (Verdict, []string) {
	verdict := Yes
	evidence := v.each(func(d *policyfile.Dependency) string {
		if d.Policy.Disabled {
			return fmt.Sprintf("%s: %s is not retried", place(d, "disabled"), d.Name)
		}
		total := d.Policy.WithDefaults().Total
		short := forbear.Failure{Class: forbear.ClassThrottled, Type: "http_429", Hint: forbear.Hint{Floor: total / 4}}
		long := short
		// Twice the total cannot be waited out, whatever the draw.
		long.Hint.Floor = 2 * total
		waits, gives := decide(d, short, 0), decide(d, long, 0)
		// All three must hold: it retries, waits as long as asked, and
		// gives up when that is too long.
		if !waits.Retry || waits.Wait < total/4 || gives.Retry {
			verdict = No
			return fmt.Sprintf("simulated: %s does not honor Retry-After", d.Name)
		}
		return fmt.Sprintf("simulated: told %v by 429, %s waits %v; told %v, more than it has, it fails at once",
			total/4, d.Name, waits.Wait.Round(time.Millisecond), 2*total)
	})
	return verdict, evidence
}

// jittered draws the first wait ten times, evenly over the draw's range, so
// that the evidence shows how far apart the waits are.
func (v *review) jittered() (Verdict, []string) {
	return v.unless([]string{"FC204", "FC205"}, func(d *policyfile.Dependency) string {
		if d.Policy.Disabled {
			return fmt.Sprintf("%s: %s is not retried", place(d, "disabled"), d.Name)
		}
		// low starts at the largest duration, so that the first wait
		// replaces it.
		low, high := time.Duration(1<<63-1), time.Duration(0)
		for i := range 10 {
			w := decide(d, forbear.Failure{Class: forbear.ClassTransient}, (float64(i)+0.5)/10).Wait
			low, high = min(low, w), max(high, w)
		}
		return fmt.Sprintf("simulated: ten first waits for %s lie between %v and %v", d.Name, low.Round(time.Millisecond), high.Round(time.Millisecond))
	})
}

// capped decides whether attempts and waits are capped. Durable kinds have
// their own range of R-2 and wait for hours by design.
func (v *review) capped() (Verdict, []string) {
	verdict := Yes
	if v.found("FC203") != nil {
		verdict = No
	}
	evidence := v.each(func(d *policyfile.Dependency) string {
		p := d.Policy.WithDefaults()
		attempts := attempts(&d.Policy)
		const most = 5
		if attempts > most && !p.Kind.Durable() {
			verdict = No
			return fmt.Sprintf("%s: %d attempts on %s", place(d, "max_retries"), attempts, d.Name)
		}
		if p.Kind.Durable() {
			return fmt.Sprintf("%s: at most %d attempts on %s, within %v", d.At, attempts, d.Name, p.Total)
		}
		return fmt.Sprintf("%s: at most %d attempts on %s, waits of at most %v", place(d, "backoff.cap"), attempts, d.Name, p.Backoff.Cap)
	})
	return verdict, evidence
}

// counted and exhaustion look at what runs, not at what is written: a file
// cannot show whether a metric is exported.
func (v *review) counted() (Verdict, []string) {
	return v.scraped("retry_initial_requests_total", "retry_attempts_total")
}

// exhaustion decides whether a spent budget would be seen.
func (v *review) exhaustion() (Verdict, []string) {
	return v.scraped("retry_budget_utilization_ratio")
}

// scraped decides whether the metrics of the given names were in the scrape.
// Switched off in a file is a no whatever the scrape holds.
func (v *review) scraped(names ...string) (Verdict, []string) {
	if len(v.silent) > 0 {
		return No, []string{strings.Join(v.silent, ", ") + ": metrics are switched off"}
	}
	if v.metrics == nil {
		return Unknown, []string{"no metrics were scraped: give --metrics URL"}
	}
	for _, name := range names {
		if !v.metrics[name] {
			return No, []string{v.metricsAt + " has no " + name}
		}
	}
	return Yes, []string{v.metricsAt + " has " + strings.Join(names, " and ")}
}

// helps simulates a minute of ordinary failures, with and without retries.
// Retries that do not raise the success rate only cost load.
func (v *review) helps() (Verdict, []string) {
	verdict := Yes
	evidence := v.each(func(d *policyfile.Dependency) string {
		if d.Policy.Disabled {
			return fmt.Sprintf("%s: %s is not retried", place(d, "disabled"), d.Name)
		}
		o, err := v.minutes[d].normal, v.minutes[d].err
		if err != nil {
			verdict = Unknown
			return fmt.Sprintf("%s cannot be simulated: %v", d.Name, err)
		}
		// Without retries exactly the first tries would have succeeded.
		if o.good <= o.firstTry {
			verdict = No
		}
		return fmt.Sprintf("simulated: with 5%% failing, %s of %d calls to %s succeed with retries, %s without",
			percent(float64(o.good)/float64(o.calls)), o.calls, d.Name, percent(float64(o.firstTry)/float64(o.calls)))
	})
	return verdict, evidence
}

// stops simulates a minute in which everything fails, and holds the load
// against what the budget may add.
func (v *review) stops() (Verdict, []string) {
	verdict := Yes
	evidence := v.each(func(d *policyfile.Dependency) string {
		o, err := v.minutes[d].outage, v.minutes[d].err
		if err != nil {
			verdict = Unknown
			return fmt.Sprintf("%s cannot be simulated: %v", d.Name, err)
		}
		// Sends per call, over a minute in which every attempt fails.
		load := float64(o.sends) / float64(o.calls)
		const most = 1.26 // 20 % of the total, and the rounding of its windows
		if load > most {
			verdict = No
		}
		return fmt.Sprintf("simulated: while everything fails, %d calls to %s become %.1f times as many sends", o.calls, d.Name, load)
	})
	return verdict, evidence
}

// WriteAnswers writes the questions with their verdicts and evidence, for a
// terminal.
func WriteAnswers(w io.Writer, answers []Answer) error {
	var b strings.Builder
	count := map[Verdict]int{}
	for _, a := range answers {
		fmt.Fprintf(&b, "%-12s  %s  [%s]\n", a.Verdict, a.Question, a.ID)
		for _, e := range a.Evidence {
			fmt.Fprintf(&b, "              - %s\n", e)
		}
		count[a.Verdict]++
	}
	fmt.Fprintf(&b, "%d yes, %d no, %d cannot judge\n", count[Yes], count[No], count[Unknown])
	_, err := io.WriteString(w, b.String())
	return err
}
