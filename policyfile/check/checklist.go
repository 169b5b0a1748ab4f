package check

import (
	"fmt"
	"io"
	"slices"
	"strings"

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
// files, what the policy decides about a failure, or a scraped metric.
type Answer struct {
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Verdict  Verdict  `json:"verdict"`
	Evidence []string `json:"evidence"`
}

// question is a review question. It is answered no by the findings that it names;
// without them either each dependency is judged, or the scraped metrics are.
type question struct {
	id, text string
	findings []string
	judge    func(d *policyfile.Dependency) (Verdict, string)
	metrics  []string
}

// questions holds the eleven questions before retries are enabled, and the
// six of a review of retry settings. Their ids appear in reports, and so
// never change.
var questions = []question{
	{id: "budgets-1", text: "Does one layer clearly own the retry?", findings: []string{"FC501", "FC502", "FC503"}, judge: owned},
	{id: "budgets-2", text: "Is there a per-request attempt limit?", findings: []string{"FC201", "FC209"}, judge: bounded},
	{id: "budgets-3", text: "Is there a fleet/client retry ratio or token bucket?", findings: noBudget, judge: budgeted},
	{id: "budgets-4", text: "Are side-effecting operations protected by idempotency?", findings: noKeys, judge: safeToRepeat},
	{id: "budgets-5", text: "Are retryable and non-retryable failures separated?", findings: noClasses, judge: classified},
	{id: "budgets-6", text: "Does overload produce a response that clients know not to hammer?", judge: obedient},
	{id: "budgets-7", text: "Does backoff include jitter?", findings: noJitter, judge: jittered},
	{id: "budgets-8", text: "Are retries counted separately from initial requests?", metrics: []string{"retry_initial_requests_total", "retry_attempts_total"}},
	{id: "budgets-9", text: "Can you see budget exhaustion?", metrics: []string{"retry_budget_utilization_ratio"}},
	{id: "budgets-10", text: "Can you show that retries improve success rate during normal transient failures?", judge: helps},
	{id: "budgets-11", text: "Can you show that retries stop during overload?", judge: stops},
	{id: "config-1", text: "Is the retryable status-code set explicit and correct?", findings: noClasses, judge: classified},
	{id: "config-2", text: "Is every retried endpoint idempotent, by method or by key?", findings: noKeys, judge: safeToRepeat},
	{id: "config-3", text: "Is full jitter applied, with differing waits in ten runs of the formula?", findings: noJitter, judge: jittered},
	{id: "config-4", text: "Is there a cap on attempts (at most 5 in memory) and on the delay (at most 60 s)?", findings: []string{"FC203"}, judge: capped},
	{id: "config-5", text: "Is Retry-After read and honored as a floor?", judge: obedient},
	{id: "config-6", text: "Is there a fleet-level retry budget?", findings: noBudget, judge: budgeted},
}

// The two lists ask for some things twice.
var (
	noBudget  = []string{"FC101", "FC102", "FC104", "FC106"}
	noKeys    = []string{"FC301", "FC302", "FC303"}
	noClasses = []string{"FC306", "FC604"}
	noJitter  = []string{"FC204", "FC205"}
)

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
	answers := make([]Answer, 0, len(questions))
	for _, q := range questions {
		verdict, evidence := v.answer(&q)
		answers = append(answers, Answer{q.id, q.text, verdict, evidence})
	}
	return answers
}

// answer decides one question. Any foreign file makes the verdict unknown: the budget or
// owner may be in a layer that is not shown.
func (v *review) answer(q *question) (Verdict, []string) {
	switch bad := v.found(q.findings); {
	case v.foreign > 0:
		return Unknown, []string{fmt.Sprintf("%d policies are settings of other software, whose behavior is not known here", v.foreign)}
	case len(v.deps) == 0:
		return Unknown, []string{"no dependency in these files"}
	case bad != nil:
		return No, bad
	case q.metrics != nil:
		return v.scraped(q.metrics)
	}
	verdict, evidence := Yes, make([]string, 0, len(v.deps))
	for _, d := range v.deps {
		one, text := q.judge(d)
		evidence = append(evidence, text)
		// One no is the verdict on all, and one that is unclear leaves all unclear.
		if one == No || one == Unknown && verdict == Yes {
			verdict = one
		}
	}
	return verdict, evidence
}

// found returns the places of the findings of the given ids, waived ones
// included: a waiver lifts a gate, and does not turn a no into a yes.
func (v *review) found(ids []string) (at []string) {
	for _, f := range v.result.Findings {
		if slices.Contains(ids, f.ID) {
			at = append(at, fmt.Sprintf("%s:%d: %s [%s]", f.File, f.Line, f.Message, f.ID))
		}
	}
	return at
}

// scraped decides whether the metrics of the given names were in the scrape: a file
// cannot show whether a metric is exported. Switched off in a file is a no whatever the
// scrape holds.
func (v *review) scraped(names []string) (Verdict, []string) {
	if len(v.silent) > 0 {
		return No, []string{strings.Join(v.silent, ", ") + ": metrics are turned off"}
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
