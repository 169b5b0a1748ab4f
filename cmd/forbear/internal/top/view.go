package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/gateway"
)

// view is what happened between two looks. Its JSON is a format that scripts
// read: fields may be added, and never renamed.
type view struct {
	At       time.Time `json:"at"`
	Service  string    `json:"service"`
	Incoming float64   `json:"incoming_per_second"`
	Outgoing float64   `json:"outgoing_per_second"`
	// Multiplier is outgoing over incoming; 0 when nothing came in. Deliveries
	// are not in it: no request that came in stands behind them.
	Multiplier   float64 `json:"multiplier"`
	Dependencies []line  `json:"dependencies"`
}

// line is one dependency of a view. Rates are those of the interval between
// the looks; budget and breaker are as they stood at the second look.
type line struct {
	Dependency    string    `json:"dependency"`
	Initial       float64   `json:"initial_per_second"` // first attempts
	Retries       float64   `json:"retries_per_second"`
	Ratio         float64   `json:"retry_ratio"`    // retries to first attempts
	Amplification float64   `json:"amplification"`  // sends for each call
	BudgetUsed    float64   `json:"budget_used"`    // retries in the budget's window
	BudgetAllowed float64   `json:"budget_allowed"` // 0: no budget
	Breaker       string    `json:"breaker"`
	FailureRate   float64   `json:"failure_rate"`            // of the breaker's window
	BreakerCause  string    `json:"breaker_cause,omitempty"` // of the latest move
	BudgetSpent   bool      `json:"budget_exhausted"`
	NextProbe     time.Time `json:"next_probe,omitzero"`
	Suppressed    float64   `json:"suppressed_per_second"` // retries that were not sent
	Layered       int64     `json:"layered_sends"`
	Certificates  int64     `json:"certificate_errors"` // since serve began
	Endpoints     int       `json:"endpoints,omitzero"` // addresses, where there may be several
	EndpointsIn   int       `json:"endpoints_in,omitzero"`
	// Pace is there while the dependency limits its callers.
	Pace *gateway.PaceStatus `json:"pace,omitempty"`
	// Hold is why an endpoint of webhooks is sent nothing but single messages, beside
	// its breaker. Earned are retries that its successes have earned.
	Hold   string    `json:"hold,omitempty"`
	Earned int       `json:"earned_retries,omitempty"`
	Types  []outcome `json:"error_types"`
}

// outcome counts the calls with one error_type since serve began, by whether
// a retry saved them. It is the evidence that retries help at all.
type outcome struct {
	Type   string `json:"error_type"`
	Saved  int64  `json:"success_after_retry"`
	Failed int64  `json:"failed"`
}

// delivered begins the names of dependencies that webhooks are delivered to.
// They are shown with the others and stay out of the multiplier.
const delivered = "webhook:"

// newView compares two looks. Counts that went back are those of a new
// process, which began at zero: their rate is that of what it has counted
// since.
func newView(before, now gateway.Status) *view {
	// Two looks may carry the same time, and a rate must not divide by
	// zero.
	seconds := max(now.At.Sub(before.At).Seconds(), 0.001)
	rate := func(a, b int64) float64 {
		if b < a {
			a = 0
		}
		return float64(b-a) / seconds
	}
	v := &view{At: now.At, Service: cli.Printable(now.Service), Incoming: rate(before.Incoming, now.Incoming), Dependencies: []line{}}
	// A message that came in once may be delivered for days: deliveries are no sign
	// of a storm, and stay out of the multiplier.
	deliveries := 0.0
	old := map[string]gateway.DependencyStatus{}
	for _, d := range before.Dependencies {
		old[d.Dependency] = d
	}
	for _, d := range now.Dependencies {
		// A dependency that is new since the last look starts from zero.
		o := old[d.Dependency]
		l := line{
			Dependency: cli.Printable(d.Dependency), Initial: rate(o.Initial, d.Initial), Retries: rate(o.Retries, d.Retries),
			BudgetUsed: d.Budget.Used, BudgetAllowed: d.Budget.Allowed, Breaker: "none",
			Suppressed: rate(sum(o.Suppressed), sum(d.Suppressed)), Layered: d.Layered, Certificates: d.CertErrors,
			Pace: d.Pace, Types: outcomes(d), Endpoints: len(d.Endpoints), Earned: d.Earned,
		}
		for _, e := range d.Endpoints {
			if e.In {
				l.EndpointsIn++
			}
		}
		// Retries without a first attempt in the interval have no ratio:
		// they belong to earlier calls.
		if l.Initial > 0 {
			l.Ratio, l.Amplification = l.Retries/l.Initial, (l.Initial+l.Retries)/l.Initial
		}
		if b := d.Breaker; b != nil {
			l.read(b)
		}
		// The lane of an endpoint probes later than its breaker would.
		if s := d.Delivery; s != nil {
			if l.Hold = cli.Printable(s.Hold); !s.NextProbe.IsZero() {
				l.NextProbe = s.NextProbe
			}
		}
		if v.Outgoing += l.Initial + l.Retries; strings.HasPrefix(d.Dependency, delivered) {
			deliveries += l.Initial + l.Retries
		}
		v.Dependencies = append(v.Dependencies, l)
	}
	if v.Incoming > 0 {
		v.Multiplier = (v.Outgoing - deliveries) / v.Incoming
	}
	return v
}

// read takes over the state of the breaker. Its words come from another
// process, perhaps of a later version: unknown ones are shown as they are,
// as far as a terminal can.
func (l *line) read(b *gateway.BreakerStatus) {
	l.Breaker, l.FailureRate = cli.Printable(b.State), b.FailureRate
	l.BreakerCause, l.BudgetSpent, l.NextProbe = cli.Printable(b.Cause), b.BudgetExhausted, b.NextProbe
	if b.Forced {
		l.Breaker += ", forced"
	}
}

// outcomes lists the error types of a dependency, the most frequent first.
func outcomes(d gateway.DependencyStatus) []outcome {
	list := []outcome{} // [] in JSON when there is none
	for t, saved := range d.Recovered {
		list = append(list, outcome{cli.Printable(t), saved, d.Failed[t]})
	}
	for t, failed := range d.Failed {
		if _, listed := d.Recovered[t]; !listed {
			list = append(list, outcome{cli.Printable(t), 0, failed})
		}
	}
	slices.SortFunc(list, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(b.Saved+b.Failed, a.Saved+a.Failed), cmp.Compare(a.Type, b.Type))
	})
	return list
}

// sum adds up what was suppressed for all reasons.
func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// budget says what is left of the retry budget: what may still be sent, not
// what was. An operator asks how far away the limit is. It never goes below
// zero: a fleet's budget may be overdrawn for a moment.
func (l *line) budget() string {
	if l.BudgetAllowed <= 0 {
		return "none"
	}
	return fmt.Sprintf("%.0f of %.0f", max(l.BudgetAllowed-l.BudgetUsed, 0), l.BudgetAllowed)
}

// breaker says where the breaker stands at the given time, and why. The
// cause is given for an open one alone. A spent budget is shown in any
// state: it stops retries whether or not it opens the breaker
// (INTG-STD-033).
func (l *line) breaker(at time.Time) string {
	if l.Breaker == "none" {
		return l.Breaker
	}
	s := fmt.Sprintf("%s (%.0f%%)", l.Breaker, 100*l.FailureRate)
	open := l.Breaker == "open" // and not forced
	if open && l.BreakerCause != "" {
		s += ", " + l.BreakerCause
	}
	if l.BudgetSpent && !(open && l.BreakerCause == breaker.CauseBudget.String()) {
		s += ", budget spent"
	}
	if wait := l.NextProbe.Sub(at).Round(time.Second); open && wait > 0 {
		s += fmt.Sprintf(", probe in %v", wait)
	}
	return s
}

// maxShown is how many error types the table shows for each dependency. The
// lines and the JSON have all of them.
const maxShown = 5

// table is the view for a terminal: the dependencies side by side, and below
// them what retries have saved.
func (v *view) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "forbear top  %s  %s   in %.1f/s   out %.1f/s   multiplier %.2f\n\n",
		v.Service, v.At.Local().Format(time.TimeOnly), v.Incoming, v.Outgoing, v.Multiplier)
	rates, saved := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0), &strings.Builder{}
	types := tabwriter.NewWriter(saved, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rates, "DEPENDENCY\tFIRST/S\tRETRY/S\tRATIO\tSENDS/CALL\tBUDGET LEFT\tBREAKER (FAILING)\tSUPPRESSED/S\tNOTES")
	fmt.Fprintln(types, "DEPENDENCY\tERROR TYPE\tSAVED BY A RETRY\tFAILED ANYWAY")
	for _, l := range v.Dependencies {
		fmt.Fprintf(rates, "%s\t%.1f\t%.1f\t%.1f%%\t%.2f\t%s\t%s\t%.1f\t%s\n", l.Dependency, l.Initial, l.Retries,
			100*l.Ratio, l.Amplification, l.budget(), l.breaker(v.At), l.Suppressed, l.notes(v.At))
		for _, o := range l.Types[:min(len(l.Types), maxShown)] {
			fmt.Fprintf(types, "%s\t%s\t%d\t%d\n", l.Dependency, o.Type, o.Saved, o.Failed)
		}
	}
	_, _ = rates.Flush(), types.Flush()
	return b.String() + "\n" + saved.String()
}

// notes name what needs a look at once, whatever the rates are: what holds an endpoint
// of webhooks, and what paces its retries; how many addresses take part, where there
// may be several; retries in a layer below, which multiply with these; and certificate
// errors, any of which may be an attack.
func (l *line) notes(at time.Time) string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if wait := l.NextProbe.Sub(at).Round(time.Second); l.Hold != "" && wait > 0 {
		note("%s, next message in %v", l.Hold, wait)
	} else if l.Hold != "" {
		note("%s", l.Hold)
	}
	if l.Earned > 0 {
		note("%d retries earned", l.Earned)
	}
	if l.Endpoints > 0 {
		note("%d of %d endpoints in rotation", l.EndpointsIn, l.Endpoints)
	}
	if l.Layered > 0 {
		note("a layer below retries")
	}
	if l.Certificates > 0 {
		note("%d certificate errors", l.Certificates)
	}
	switch p := l.Pace; {
	case p == nil:
	case p.Closed:
		note("refuses everything, %d waiting", p.Waiting)
	case p.Rate > 0:
		note("paced at %.0f/s, %d waiting", p.Rate, p.Waiting)
	}
	return strings.Join(notes, ", ")
}

// lines is the view for a file or a pipe: key=value, one line for each
// dependency and interval, so that grep and awk need no state. Times are in
// UTC.
func (v *view) lines() string {
	var b strings.Builder
	for _, l := range v.Dependencies {
		fmt.Fprintf(&b, "%s dependency=%s first=%.1f/s retries=%.1f/s ratio=%.1f%% sends_per_call=%.2f budget_left=%q breaker=%q suppressed=%.1f/s multiplier=%.2f",
			v.At.UTC().Format(time.RFC3339), l.Dependency, l.Initial, l.Retries, 100*l.Ratio, l.Amplification,
			l.budget(), l.breaker(v.At), l.Suppressed, v.Multiplier)
		for _, o := range l.Types {
			fmt.Fprintf(&b, " %s=%d saved,%d failed", o.Type, o.Saved, o.Failed)
		}
		if n := l.notes(v.At); n != "" {
			fmt.Fprintf(&b, " notes=%q", n)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
