package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/violation"
)

// The functions below judge one dependency for a review question, where no finding has
// answered it, and say what the verdict rests on.

// place says where a field was written, or that its default applies.
func place(d *policyfile.Dependency, field string) string {
	at, ok := d.Place(field)
	if ok {
		return at.String()
	}
	return d.At.String() + " (by default)"
}

// notRetried is the evidence for a dependency whose retries are switched off.
func notRetried(d *policyfile.Dependency) (Verdict, string) {
	return Yes, fmt.Sprintf("%s: %s is not retried", place(d, "disabled"), d.Name)
}

// owned names the one owner: two layers that retry multiply.
func owned(d *policyfile.Dependency) (Verdict, string) {
	return Yes, fmt.Sprintf("%s: %s is retried by %s", place(d, "owner"), d.Name, d.Policy.Owner)
}

// bounded names the bound of the attempts.
func bounded(d *policyfile.Dependency) (Verdict, string) {
	field := "max_retries"
	if d.Policy.Kind == forbear.Webhook {
		field = "max_attempts"
	}
	return Yes, fmt.Sprintf("%s: at most %d attempts on %s", place(d, field), attempts(&d.Policy), d.Name)
}

// budgeted names the budget that bounds the retries of all calls together.
func budgeted(d *policyfile.Dependency) (Verdict, string) {
	b := d.Policy.WithDefaults().Budget
	return Yes, fmt.Sprintf("%s: retries on %s are at most %s of %s requests over %v", place(d, "budget"), d.Name, percent(b.Ratio), b.Of, b.Window)
}

// safeToRepeat decides whether writes are safe to repeat. Only a written value
// counts: a default does not show that anyone has decided.
func safeToRepeat(d *policyfile.Dependency) (Verdict, string) {
	_, keys := d.Place("idempotency")
	_, methods := d.Place("methods")
	switch {
	case d.Policy.Kind.Durable():
		return Yes, fmt.Sprintf("%s: %s carries one id for all deliveries", d.At, d.Name)
	case d.Policy.Disabled:
		return notRetried(d)
	case d.Policy.Idempotent:
		return Yes, fmt.Sprintf("%s: every operation of %s is declared idempotent", place(d, "idempotent"), d.Name)
	case keys:
		return Yes, fmt.Sprintf("%s: writes to %s are retried only with a key", place(d, "idempotency"), d.Name)
	case methods:
		return Yes, fmt.Sprintf("%s: %s is only sent %s", place(d, "methods"), d.Name, strings.Join(d.Methods, ", "))
	}
	return Unknown, fmt.Sprintf("%s: %s names neither its methods nor the source of its keys", d.At, d.Name)
}

// classified says that R-4's terminal failures stay terminal.
func classified(d *policyfile.Dependency) (Verdict, string) {
	return Yes, fmt.Sprintf("%s: %s retries what R-4 lists, and no override makes 400, 401, 403, 404, 409 or 422 retryable", place(d, "classify"), d.Name)
}

// obedient asks the policy about a throttled response: a short Retry-After has to be
// waited out, and one beyond the total has to end the call. A setting could not
// show either.
func obedient(d *policyfile.Dependency) (Verdict, string) {
	if d.Policy.Disabled {
		return notRetried(d)
	}
	total := d.Policy.WithDefaults().Total
	throttled := func(floor time.Duration) forbear.Failure {
		return forbear.Failure{Class: forbear.ClassThrottled, Type: "http_429", Hint: forbear.Hint{Floor: floor}}
	}
	// Twice the total cannot be waited out, whatever the draw.
	waits, gives := decide(d, throttled(total/4), 0), decide(d, throttled(2*total), 0)
	if !waits.Retry || waits.Wait < total/4 || gives.Retry {
		return No, fmt.Sprintf("simulated: %s does not honor Retry-After", d.Name)
	}
	return Yes, fmt.Sprintf("simulated: after a 429 that asks for %v, %s waits %v; after one that asks for %v, more than its total, it fails at once",
		total/4, d.Name, waits.Wait.Round(time.Millisecond), 2*total)
}

// jittered draws the first wait ten times, evenly over the draw's range, so
// that the evidence shows how far apart the waits are.
func jittered(d *policyfile.Dependency) (Verdict, string) {
	if d.Policy.Disabled {
		return notRetried(d)
	}
	first := func(draw float64) time.Duration {
		return decide(d, forbear.Failure{Class: forbear.ClassTransient}, draw).Wait.Round(time.Millisecond)
	}
	return Yes, fmt.Sprintf("simulated: ten first waits for %s lie between %v and %v", d.Name, first(0.05), first(0.95))
}

// capped decides whether attempts and waits are capped. Durable kinds have
// their own range of R-2 and wait for hours by design.
func capped(d *policyfile.Dependency) (Verdict, string) {
	const most = 5
	p, n := d.Policy.WithDefaults(), attempts(&d.Policy)
	switch {
	case p.Kind.Durable():
		return Yes, fmt.Sprintf("%s: at most %d attempts on %s, within %v", d.At, n, d.Name, p.Total)
	case n > most:
		return No, fmt.Sprintf("%s: %d attempts on %s", place(d, "max_retries"), n, d.Name)
	}
	return Yes, fmt.Sprintf("%s: at most %d attempts on %s, waits of at most %v", place(d, "backoff.cap"), n, d.Name, p.Backoff.Cap)
}

// transient is the share of attempts that fail in a normal minute.
const transient = 0.05

// helps calculates how many calls succeed while a few attempts fail by chance, with and
// without retries. Retries that do not raise the success rate only cost load.
func helps(d *policyfile.Dependency) (Verdict, string) {
	switch {
	case d.Policy.Disabled:
		return notRetried(d)
	case leaves(d):
		return Unknown, fmt.Sprintf("%s breaks the standard: fix its findings first", d.Name)
	}
	// Each retry of a call is wanted as often as all attempts before it fail, and had
	// while the budget lasts.
	wanted, failing := 0.0, 1.0
	for range d.Policy.Retries() {
		failing *= transient
		wanted += failing
	}
	had := min(wanted, d.Policy.WithDefaults().Budget.MaxAmplification()-1)
	return Yes, fmt.Sprintf("calculated: if %s of the attempts fail, %s of the calls to %s succeed with retries, %s without",
		percent(transient), percent((1-transient)*(1+had)), d.Name, percent(1-transient))
}

// stops calculates how many attempts the calls of a busy client become while everything
// fails. A budget that the standard allows adds a quarter at most.
func stops(d *policyfile.Dependency) (Verdict, string) {
	if leaves(d) {
		return Unknown, fmt.Sprintf("%s breaks the standard: fix its findings first", d.Name)
	}
	load := min(float64(attempts(&d.Policy)), d.Policy.WithDefaults().Budget.MaxAmplification())
	return Yes, fmt.Sprintf("calculated: if everything fails, a busy client's calls to %s become %s times as many attempts", d.Name, number(load))
}

// leaves reports whether the retries of a dependency leave the standard. Its breaker does not
// matter here: the sums are those of retries alone.
func leaves(d *policyfile.Dependency) bool {
	p := d.Policy
	p.Breaker = breaker.Policy{}
	return violation.Of(&p) != nil
}

// decide asks the policy about one failure after the first attempt, with a
// given draw and nothing known of budget or breaker.
func decide(d *policyfile.Dependency, f forbear.Failure, draw float64) forbear.Decision {
	p := d.Policy.WithDefaults()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := forbear.State{Attempt: 1, Start: now, Key: "simulated"} // no rule about writes is in question
	return forbear.Decide(&p, s, f, now, func() float64 { return draw })
}
