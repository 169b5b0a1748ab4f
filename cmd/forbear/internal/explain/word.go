package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/driver"
	"github.com/forbear-go/forbear/policyfile/check"
)

// Word explains a word from forbear's messages: a reason, a rule of the standard, or a
// finding of forbear check or forbear lint. It ignores case, and accepts a reason written
// with spaces. A slip gets the nearest word as a hint. format is text or json. It returns
// the exit code; command is for its error.
func Word(std *cli.Streams, command, word, format string) int {
	text, value := lookUp(word)
	if in := inside(word); text == nil && in != "" {
		text, value = lookUp(in)
	}
	switch {
	case text == nil:
		return std.Fail("%s: %.64q is not a reason, rule or finding%s", command, word, nearest.Hint(word, words(), elsewhere(word)))
	case format == "json":
		_ = cli.WriteJSON(std.Out, value)
	default:
		text(std.Out)
	}
	return cli.ExitOK
}

// elsewhere says what explains a word that is none of Word's.
func elsewhere(word string) string {
	name := underscored(strings.TrimSpace(word))
	if status, ok := strings.CutPrefix(name, "http_"); ok && len(status) == 3 {
		return ": a status is explained by forbear explain --status " + status
	}
	if slices.Contains(errorNames(), name) {
		return ": an error is explained by forbear explain --error " + name
	}
	return ": docs/reference/reasons.md lists reasons, forbear rules list and forbear lint --rules findings"
}

// words are all that Word knows.
func words() (all []string) {
	for _, r := range Reasons() {
		all = append(all, r.Name)
	}
	for _, r := range rules {
		all = append(all, r.ID)
	}
	for _, r := range check.Rules() {
		all = append(all, r.ID)
	}
	for _, d := range lint.Rules() {
		all = append(all, d.ID)
	}
	return all
}

// lookUp returns what writes the meaning of a word as text, and the meaning itself.
func lookUp(word string) (text func(io.Writer), value any) {
	name := underscored(strings.TrimSpace(word))
	for _, r := range Reasons() {
		if r.Name == name {
			return r.write, r
		}
	}
	id := strings.ToUpper(strings.TrimSpace(word))
	if number, ok := strings.CutPrefix(id, "R"); ok && number != "" && strings.Trim(number, "0123456789") == "" {
		id = "R-" + number
	}
	for _, r := range rules {
		if r.ID == id {
			r.fill()
			return r.write, r
		}
	}
	if r, ok := check.RuleOf(id); ok {
		return func(w io.Writer) { writeFinding(w, r) }, r
	}
	if d, ok := lint.Explain(id); ok {
		return func(w io.Writer) { driver.Explain(w, d) }, d
	}
	return nil, nil
}

// underscored makes of words what a reason is written like.
func underscored(words string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(words))
}

// write writes r for people.
func (r Reason) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n%s\n", titled(r.Name, r.Rule), r.Means)
	part := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "\n%s: %s\n", name, text)
		}
	}
	part("Figures", r.Figures)
	part("What to do", r.Change)
	part("In the policy file", strings.Join(r.Settings, ", "))
	part("Counted in", r.Metric)
	fmt.Fprintf(w, "\n%s\n%s\n", r.Guide, r.Page)
}

// fill adds what goes by the rule.
func (r *rule) fill() {
	for _, x := range Reasons() {
		if x.Rule == r.ID {
			r.Reasons = append(r.Reasons, x.Name)
		}
	}
	for _, x := range check.Rules() {
		if x.Standard == r.ID {
			r.Findings = append(r.Findings, x.ID)
		}
	}
	r.Page = Docs + "rules.md"
}

// write writes r for people.
func (r rule) write(w io.Writer) {
	id := r.ID
	if about := companions[id]; about != "" {
		id += ", " + about
	}
	fmt.Fprintf(w, "%s\n\n%s\n", id, r.Means)
	if len(r.Reasons) > 0 {
		fmt.Fprintf(w, "\nReasons: %s\n", strings.Join(r.Reasons, ", "))
	}
	if len(r.Findings) > 0 {
		fmt.Fprintf(w, "\nFindings of forbear check: %s\n", strings.Join(r.Findings, ", "))
	}
	fmt.Fprintf(w, "\n%s\n", r.Page)
}

// writeFinding writes what a finding means, why it matters and how to correct it.
func writeFinding(w io.Writer, r report.Rule) {
	// Whether a waiver helps is what a team asks next.
	waivable := "No waiver lifts it"
	if r.Waivable {
		waivable = "A waiver of " + cmp.Or(r.Standard, "the rule that it names") + " lifts it"
	}
	fmt.Fprintf(w, "%s: %s\n\n%s\n\nWhy: %s\nFix: %s\n%s.\n", titled(r.ID+" "+r.Name, r.Standard), r.Severity, strings.ToUpper(r.Summary[:1])+r.Summary[1:]+".", r.Why, r.Fix, waivable)
	if about := companions[r.Standard]; about != "" {
		fmt.Fprintf(w, "It follows from %s, %s.\n", r.Standard, about)
	}
	fmt.Fprintf(w, "\n%sreference/findings.md#%s\n", Docs, strings.ToLower(r.ID))
}

// companions are the standards beside the standard on retries.
var companions = map[string]string{
	"INTG-STD-033": "the companion standard on circuit breakers",
	"INTG-STD-035": "the companion standard on timeouts",
}

// titled is a name with its rule, where there is one. The numbers of companion standards
// say nothing to most readers.
func titled(name, rule string) string {
	if rule == "" || companions[rule] != "" {
		return name
	}
	return name + " (" + rule + ")"
}

// rule is a rule of the standard, in a sentence.
type rule struct {
	ID    string `json:"rule"`
	Means string `json:"means"`
	// Reasons and Findings go by it.
	Reasons  []string `json:"reasons,omitempty"`
	Findings []string `json:"findings,omitempty"`
	Page     string   `json:"page"`
}

// rules are those of the standard, and the two companion standards that forbear follows.
var rules = []rule{
	{ID: "R-1", Means: "Waits before retries are random, between zero and a bound that doubles each time, up to a cap (full jitter). Clients that failed together do not come back together."},
	{ID: "R-2", Means: "Each kind of call has a maximum number of retries: 3 for a synchronous call by default, 1 to 5 by setting. More needs a waiver."},
	{ID: "R-3", Means: "All attempts and waits of a call fit into one total: 30 s, or 24 h for events and webhooks."},
	{ID: "R-4", Means: "Only failures that may go away are retried: lost connections, timeouts, 429, 502, 503, 504. Most other 4xx and unknown failures are not."},
	{ID: "R-5", Means: "A wait that the server asks for (Retry-After) is never shortened. If it does not fit into the call, the call fails at once."},
	{ID: "R-6", Means: "Operations that are not idempotent are repeated only with an idempotency key, the same for all attempts. Servers remember keys for at least a day."},
	{ID: "R-7", Means: "Over all calls of a client, retries are at most 20 % of the requests to a dependency in any 30 s. A circuit breaker stops calls to a dependency that keeps failing. Only one layer retries."},
	{ID: "R-8", Means: "Durable work that has used up its attempts goes to a dead-letter queue with an alert, and can be sent again from there."},
	{ID: "R-9", Means: "Certificates are verified, and a refused one is not retried. No retry is sent with weaker credentials. Logs and errors contain no secrets."},
	{ID: "R-10", Means: "Retries are visible: in logs with seven fields, in metrics with fixed names, and by a correlation id that all attempts share."},
	{ID: "INTG-STD-033", Means: "Circuit breakers open above a failure rate or a share of slow calls, and let probes through after a while. Bulkheads limit concurrent calls."},
	{ID: "INTG-STD-035", Means: "Timeouts fit into one another: an attempt into the total, and a call of the layer below into an attempt of the layer above."},
}
