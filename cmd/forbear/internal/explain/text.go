package explain

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// explanation is the readable form of an explanation: the decision first, then
// the facts behind it, then the course of a call that fails like this again and
// again. testdata/explain.txt has all of its forms. Programs should read the JSON
// instead: this text may change with any release. The decision stands in the first
// line, so that it survives a cut in a chat or a ticket.
func explanation(x Explanation, budget *Budget) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s", x.Decision)
	if x.Decision == "retry" {
		fmt.Fprintf(&b, " after %s", span(x.Wait.Floor, x.Wait.Ceiling))
	}
	if x.Decision != "success" {
		fmt.Fprintf(&b, ": %s", because(x.Reason, x.Rule))
	}
	b.WriteString("\n\n")
	line("failure", "%s, class %s", cmp.Or(x.Type, "none"), x.Class)
	line("attempt", "%d of %d, within %v in all", x.Attempt, x.Retries+1, x.Policy.Total)
	// What is allowed is the policy's number, floor included; R-7 counts the
	// retries of the whole dependency against it, and not those of one call.
	if budget != nil {
		p := x.Policy.Budget
		allowed := "any number of"
		if n := p.Allowed(budget.Initial); n < math.MaxInt64 {
			allowed = strconv.FormatInt(n, 10)
		}
		line("budget", "%d of %s retries used for %d requests in %v (R-7)", budget.Retries, allowed, budget.Initial, p.Window)
	}
	for _, n := range x.Notes {
		line("note", "%s", n)
	}
	if len(x.Steps) == 0 {
		return b.String()
	}
	// The course is the worst case: every wait at its longest.
	b.WriteString("\n  should every attempt fail like this one:\n\n")
	fmt.Fprintf(&b, "    %-9s %-18s %s\n", "attempt", "wait", "sent at the latest after")
	for _, s := range x.Steps {
		if s.Retry {
			fmt.Fprintf(&b, "    %-9d %-18s %v\n", s.Attempt, span(s.Floor, s.Ceiling), s.AtTheLatest.Round(time.Millisecond))
		} else {
			fmt.Fprintf(&b, "    %-9s %s\n", "then", "stop: "+because(s.Reason.String(), s.Reason.Rule()))
		}
	}
	return b.String()
}

// because names a reason and, where there is one, its rule. Reasons are labels with
// underscores in metrics; people read words.
func because(reason, rule string) string {
	reason = strings.ReplaceAll(reason, "_", " ")
	if rule == "" {
		return reason
	}
	return reason + " (" + rule + ")"
}

// span is a wait that is drawn between two bounds, to the millisecond. Equal bounds
// are shown as one wait, such as that of a hint without spread.
func span(floor, ceiling time.Duration) string {
	floor, ceiling = floor.Round(time.Millisecond), ceiling.Round(time.Millisecond)
	if floor == ceiling {
		return floor.String()
	}
	return floor.String() + " to " + ceiling.String()
}
