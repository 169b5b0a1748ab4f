package explain

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/reason"
)

// Verdict is what explain says about one situation. Its JSON is a format that other
// programs read: a field may be added, and none changes its meaning. The conformance
// vectors compare it field by field across implementations, which is why waits are
// bounds and never one random number.
type Verdict struct {
	ID string `json:"id"`
	// Decision is the word to branch on. Reason and Rule are for people and logs: a
	// release may add reasons.
	Decision string `json:"decision"` // retry, stop or success
	Reason   string `json:"reason"`
	Rule     string `json:"rule"`
	Class    string `json:"class"`
	// Waits are whole milliseconds, rounded up, and 0 unless Decision is retry.
	WaitMin int64 `json:"wait_min_ms"` // the bounds of the draw, the hint's spread included
	WaitMax int64 `json:"wait_max_ms"`
	Retries int   `json:"max_retries"` // of the call: the policy's, or fewer where the server advises so
	// Notes is never null. Its texts are for readers and may change.
	Notes []string `json:"notes"`
}

// Step is one attempt that may follow, or the stop that ends the course. Waits are
// shown as bounds, because jitter makes each run of a call differ.
type Step struct {
	Attempt     int
	Floor       time.Duration
	Ceiling     time.Duration
	AtTheLatest time.Duration // after the present, every wait at its longest
	Reason      forbear.Reason
	Retry       bool // false for the stop
}

// Explanation is a verdict together with what a reader wants beside it. Programs
// get the verdict alone. The fields beside Verdict have no JSON of their own, so that
// they may change with any release.
type Explanation struct {
	Verdict
	Type    string // the error_type label
	Attempt int
	Policy  forbear.Policy // with defaults
	Wait    struct{ Floor, Ceiling time.Duration }
	Steps   []Step // the attempts to come, should each fail alike; the last one is the stop
}

// Explain decides about a situation. An error is a situation that means nothing,
// and not a failure that is not retried. It reads no clock when the situation gives
// the time, and no network, so equal situations have equal verdicts. It is safe for
// concurrent use.
func Explain(s Situation) (Explanation, error) {
	f, err := s.facts()
	if err != nil {
		return Explanation{Verdict: Verdict{ID: s.ID}}, err
	}
	d := s.decide(&f, f.state, f.now, 0)
	f.explain(d)
	x := Explanation{
		Type:    f.failure.Type,
		Attempt: f.state.Attempt,
		Policy:  f.policy.WithDefaults(),
		Verdict: Verdict{
			ID:       s.ID,
			Decision: decision(d),
			Reason:   d.Reason.String(),
			Rule:     d.Reason.Rule(),
			Class:    d.Class.String(),
			Retries:  f.retries(),
			Notes:    append([]string{}, f.notes...), // [] in JSON when there is none
		},
	}
	if d.Retry {
		x.Wait.Floor, x.Wait.Ceiling = d.Floor, d.Ceiling
		x.WaitMin, x.WaitMax = milliseconds(d.Floor), milliseconds(d.Ceiling)
		x.Steps = s.steps(&f, d)
	}
	return x, nil
}

// retries returns how many retries the call may have: the policy's count, which the
// server's advice lowers and never raises.
func (f *facts) retries() int {
	n := f.policy.Retries()
	if most := f.failure.Hint.MaxRetries; most > 0 {
		n = min(n, most)
	}
	return n
}

// decision is the one word of a decision that a program branches on. Success is a
// word of its own: nothing is retried then, but nothing has failed either.
func decision(d forbear.Decision) string {
	switch {
	case d.Retry:
		return "retry"
	case d.Reason == reason.Success:
		return "success"
	default:
		return "stop"
	}
}

// decide asks the engine. spent is the number of retries that the call has made
// since the budget was read. The random number is 0, which makes Wait the floor: the
// bounds of a decision do not depend on it.
func (s *Situation) decide(f *facts, state forbear.State, now time.Time, spent int64) forbear.Decision {
	if b := s.Budget; b != nil {
		state.BudgetSpent = f.policy.WithDefaults().Budget.Spent(b.Initial, b.Retries+spent)
	}
	return forbear.Decide(&f.policy, state, f.failure, now, func() float64 { return 0 })
}

// steps lists what follows, should every attempt fail like this one and every
// wait take its longest. It ends, since every policy bounds its retries. The longest waits are what an operator has to
// plan for.
func (s *Situation) steps(f *facts, d forbear.Decision) []Step {
	var steps []Step
	state, now := f.state, f.now
	for spent := int64(1); ; spent++ {
		at := now.Add(d.Ceiling)
		step := Step{
			Attempt: state.Attempt + 1, Floor: d.Floor, Ceiling: d.Ceiling,
			AtTheLatest: at.Sub(f.now), Reason: d.Reason, Retry: d.Retry,
		}
		if !d.Retry {
			step.AtTheLatest = now.Sub(f.now)
		}
		steps = append(steps, step)
		if !d.Retry {
			return steps
		}
		d.Wait = d.Ceiling
		state, now = state.After(d), at
		// A name that does not resolve now will not in a moment either: the next
		// attempt counts as one more such failure.
		if f.failure.Class == forbear.ClassDNS && state.DNSFailures > 0 {
			state.DNSFailures++
		}
		d = s.decide(f, state, now, spent)
	}
}

// explain adds what the numbers alone do not say. A note says what the caller can
// do, such as sending a key. It never repeats the reason, which the verdict holds
// already.
//
// An unknown failure has a note of its own, because the usual next step is to
// classify it in the policy.
func (f *facts) explain(d forbear.Decision) {
	h := f.failure.Hint
	if h.Floor > 0 && d.Class.Retryable() {
		f.note("the server asks for a wait of %v (R-5)", brief(h.Floor))
	}
	switch d.Reason {
	case reason.NoKey:
		switch {
		case len(f.state.Key) > layer.MaxKeyLen:
			f.note("the idempotency key has %d characters: want at most %d", len(f.state.Key), layer.MaxKeyLen)
		case f.policy.Keys == forbear.KeyRefuse:
			f.note("the policy refuses to retry operations that need an idempotency key")
		default:
			f.note("this method is retried only with an Idempotency-Key: add --key to see")
		}
	case reason.Unknown:
		f.note("unknown failures are not retried: classify this one in the policy if it goes away")
	case reason.Unauthorized:
		if !f.state.Refreshable {
			f.note("a source of fresh credentials would allow one more attempt (R-9)")
		}
	case reason.Certificate:
		f.note("someone may be intercepting the connection: investigate")
	case reason.DNSLimit:
		f.note("a name that does not resolve gets at most two attempts")
	}
}

// milliseconds rounds up: a wait is never announced as shorter than it is. A
// rounding down could make a client that trusts the verdict call before the server's
// Retry-After has passed.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// brief rounds a duration to what a reader needs: milliseconds, where there are
// seconds too.
func brief(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(time.Millisecond)
	}
	return d
}

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
		if x.Decision == "stop" {
			fmt.Fprintf(&b, "\n  forbear explain %s says more\n", x.Reason)
		}
		return b.String()
	}
	// The course is the worst case: every wait at its longest.
	b.WriteString("\n  if every attempt fails like this one:\n\n")
	fmt.Fprintf(&b, "    %-9s %-18s %s\n", "attempt", "wait", "sent after at most")
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
func because(reason, rule string) string { return titled(strings.ReplaceAll(reason, "_", " "), rule) }

// span is a wait that is drawn between two bounds, to the millisecond. Equal bounds
// are shown as one wait, such as that of a hint without spread.
func span(floor, ceiling time.Duration) string {
	floor, ceiling = floor.Round(time.Millisecond), ceiling.Round(time.Millisecond)
	if floor == ceiling {
		return floor.String()
	}
	return floor.String() + " to " + ceiling.String()
}
