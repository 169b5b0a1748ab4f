package probe

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/law"
	"github.com/forbear-go/forbear/policyfile"
)

// policy writes the policy that the client has, as far as it was seen, as a policy file:
// for forbear check, sim and policy export. What a policy file cannot say is a comment.
func (r *Report) policy(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# What forbear probe saw of %s.", r.name())
	line("service: client\ndependencies:\n  server:\n    owner: client")
	if r.Protocol == overGRPC.name {
		line("    kind: grpc")
	}
	if r.retries == 0 {
		line("    disabled: true # nothing was sent again")
	} else {
		line("    max_retries: %d", r.retries)
	}
	if r.attempt > 0 {
		line("    per_attempt: %s", policyfile.FormatDuration(r.attempt))
	}
	if r.Law != nil {
		g := r.Law.Growth
		backoff := "base: " + policyfile.FormatDuration(likely(g))
		if g.Cap > 0 {
			backoff += ", cap: " + policyfile.FormatDuration(round(g.Cap))
		}
		line("    backoff: {%s}%s", backoff, r.unsaid())
	}
	line("    budget: none # a budget that calls of one process share was not seen")
	line("    breaker: {disabled: true} # nor a breaker")
	if len(r.classes) > 0 {
		line("    classify:")
		for _, name := range slices.Sorted(maps.Keys(r.classes)) {
			line("      %s: %s", name, r.classes[name])
		}
	}
	line("# The same client in a scenario of forbear sim:\n#   client: %s", r.simulated())
	_, err := io.WriteString(w, b.String())
	return err
}

// simulated is the client in the words of a scenario, which has some for what the standard
// forbids.
func (r *Report) simulated() string {
	words := []string{fmt.Sprintf("retries: %d", r.retries)}
	baseline := []string{"no_budget: true", "unchecked: true"}
	if r.attempt > 0 {
		words = append(words, "timeout: "+policyfile.FormatDuration(r.attempt))
	}
	if r.Law != nil {
		g := r.Law.Growth
		words = append(words, "base: "+policyfile.FormatDuration(likely(g)))
		if g.Cap > 0 {
			words = append(words, "cap: "+policyfile.FormatDuration(round(g.Cap)))
		}
		switch l := r.Law.Law; {
		case l == law.Immediate:
			baseline = append(baseline, "wait: none")
		case l == law.None && g.Factor == 1:
			baseline = append(baseline, "wait: fixed")
		case l == law.Equal || l == law.Proportional:
			baseline = append(baseline, "wait: equal")
		case l != law.Full:
			baseline = append(baseline, "wait: exponential")
		}
	}
	return fmt.Sprintf("{%s, breaker: false, baseline: {%s}}", strings.Join(words, ", "), strings.Join(baseline, ", "))
}

// unsaid is a comment about waits that no policy has.
func (r *Report) unsaid() string {
	if r.Law.Law == law.Full {
		return ""
	}
	return " # its waits have " + r.Law.Law.String() + ", which a policy file cannot say"
}

// round makes a figure of what was measured: its two first digits.
func round(d time.Duration) time.Duration {
	unit := time.Millisecond
	for d/unit >= 100 {
		unit *= 10
	}
	return d.Round(unit)
}

// likely is the base that someone has set, most likely: near the estimate, since what is
// possible is a wide range where there are few waits, or where a busy machine has made them late.
func likely(g law.Growth) time.Duration {
	return max(simplest(max(g.Low, g.Base-g.Base/4), min(g.High, g.Base+g.Base/4)), time.Millisecond)
}

// timeout is the time-out that someone has set, most likely, of an attempt that took so long:
// the client counts from before the request arrives, and is late to end.
func timeout(took time.Duration) time.Duration {
	return simplest(took-took/10, took+max(took/20, 100*time.Millisecond))
}

// simplest is the duration between two that is the shortest to write: the one that someone
// has set, most likely.
func simplest(low, high time.Duration) time.Duration {
	for unit := 10 * time.Second; unit >= time.Millisecond; unit /= 10 {
		for _, step := range []time.Duration{unit, unit / 2} {
			if d := (low + step - 1) / step * step; d <= high {
				return d
			}
		}
	}
	return round(low)
}

// learn notes what the verdicts say of the policy.
func (r *Report) learn(k *known) {
	if k.lawFound {
		r.Law, r.waits = new(k.law), k.waits
	}
	r.classes = map[string]string{}
	for i := range r.Cases {
		f := &r.Cases[i]
		switch {
		case f.ID == outage:
			for i := range f.Runs {
				r.retries = max(r.retries, f.Runs[i].sends()-1)
			}
		case f.ID == k.hang && len(f.Runs) > 0 && f.Runs[0].sends() > 0:
			if a := f.Runs[0].Arrivals[0]; a.Gone > 0 {
				r.attempt = timeout(a.Gone - a.At)
			}
		case f.group != "" && f.Outcome == Fails:
			code := strings.Split(f.ID, "/")[1]
			r.classes[k.name+"_"+code] = map[bool]string{true: "terminal", false: "transient"}[f.group == retryable]
		}
	}
}
