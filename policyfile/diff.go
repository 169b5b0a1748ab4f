package policyfile

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
)

// Change is one thing that differs between two policy files, in words.
type Change struct {
	// Dependency is what it is about; "" for the file itself.
	Dependency string `json:"dependency,omitzero"`
	// Field is the field that was changed, as "backoff.cap"; "" for what
	// follows from several: the load and the time of a call.
	Field string `json:"field,omitzero"`
	Text  string `json:"text"`
}

// Diff says what the change from old to new means: first what it does to the
// load in an outage and to the time of a call, then field by field. A
// reviewer sees the consequences before the figures they follow from.
func Diff(old, new *File) (changes []Change) {
	add := func(dependency, field, format string, args ...any) {
		changes = append(changes, Change{dependency, field, fmt.Sprintf(format, args...)})
	}
	if old.Service != new.Service {
		add("", "service", "the service is now %s, it was %s", cmp.Or(new.Service, "unnamed"), cmp.Or(old.Service, "unnamed"))
	}
	if old.Instances != new.Instances {
		add("", "instances", "the service now has %d instances, it had %d", new.Instances, old.Instances)
	}
	for _, was := range old.All() {
		if _, ok := new.Dependency(was.Name); !ok {
			add(was.Name, "", "%s is removed", was.Name)
		}
	}
	for _, is := range new.All() {
		was, ok := old.Dependency(is.Name)
		if !ok {
			add(is.Name, "", "%s is new: %s", is.Name, sum(&is.Policy))
			continue
		}
		meaning(&was, is, add)
		details(&was, is, add)
	}
	if old.Observability != new.Observability {
		add("", "observability", "%s", silence(new.Observability))
	}
	waiverChanges(old, new, add)
	if a, b := fmt.Sprint(routes(old)), fmt.Sprint(routes(new)); a != b || !slices.Equal(old.Gateway.Listen, new.Gateway.Listen) {
		add("", "gateway", "the gateway's listen or routes have changed")
	}
	if a, b := old.Gateway.TrustedProxies, new.Gateway.TrustedProxies; !slices.Equal(a, b) {
		list := func(of []netip.Prefix) string { return cmp.Or(strings.Trim(fmt.Sprint(of), "[]"), "none") }
		add("", "gateway.trusted_proxies", "gateway.trusted_proxies is now %s, it was %s", list(b), list(a))
	}
	if old.Gateway.TLS != new.Gateway.TLS {
		add("", "gateway.tls", "gateway.tls has changed")
	}
	if !reflect.DeepEqual(old.Lint, new.Lint) {
		add("", "lint", "the linter's settings have changed")
	}
	return changes
}

// adder adds one change; field is "" for what follows from several fields.
type adder = func(dependency, field, format string, args ...any)

// amplification is what an outage lets the calls of a busy client grow to: the
// attempts of the policy, or its budget's share, whichever is less. The floor for
// quiet clients is a field of its own, and [budget.Policy.AllowedEach] what it adds.
func amplification(p *forbear.Policy) float64 {
	return min(float64(p.Retries()+1), p.WithDefaults().Budget.MaxAmplification())
}

// sum describes the policy of a new dependency in one line.
func sum(p *forbear.Policy) string {
	return fmt.Sprintf("at most %d attempts within %s, and %s times the load of a busy client in an outage",
		p.Retries()+1, FormatDuration(p.WithDefaults().Total), trim(amplification(p)))
}

// meaning says what several fields come to together: the load in an outage,
// the number of attempts, and the longest call. None of these is visible in
// a single field.
func meaning(was, is *Dependency, add adder) {
	before, after := amplification(&was.Policy), amplification(&is.Policy)
	if change := math.Round((after/before - 1) * 100); change > 0 {
		add(is.Name, "", "in an outage a busy client may now send %s %s %% more load: %s times its calls, it was %s", is.Name, trim(change), trim(after), trim(before))
	} else if change < 0 {
		add(is.Name, "", "in an outage a busy client now sends %s at least %s %% less load: at most %s times its calls, it was %s", is.Name, trim(-change), trim(after), trim(before))
	}
	if a, b := was.Policy.Retries()+1, is.Policy.Retries()+1; a != b {
		add(is.Name, "", "a call to %s is now tried up to %d times, it was %d", is.Name, b, a)
	}
	if a, b := was.Policy.WithDefaults().Total, is.Policy.WithDefaults().Total; a != b {
		word := "longer"
		if b < a {
			word = "less"
		}
		add(is.Name, "", "a call to %s may now take %s: up to %s, it was %s", is.Name, word, FormatDuration(b), FormatDuration(a))
	}
}

// details lists the fields that differ, in the order of the file. An absent
// field means the default, and the text says so.
func details(was, is *Dependency, add adder) {
	// Compared as text: what looks the same in the file is the same.
	paths, before := flatten(*was)
	more, after := flatten(*is)
	for _, p := range more {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	for _, p := range paths {
		a, b := before[p], after[p]
		switch {
		case a == b:
		case a == "":
			add(is.Name, p, "%s: %s is now %s, it was the default", is.Name, p, b)
		case b == "":
			add(is.Name, p, "%s: %s is now the default, it was %s", is.Name, p, a)
		default:
			add(is.Name, p, "%s: %s is now %s, it was %s", is.Name, p, b, a)
		}
	}
}

// silence says what R-10 demands and the new file switches off.
func silence(o Observability) string {
	var off []string
	if o.NoMetrics {
		off = append(off, "metrics")
	}
	if o.NoLogs {
		off = append(off, "logs")
	}
	if off == nil {
		return "metrics and logs are on again"
	}
	return strings.Join(off, " and ") + " are now turned off"
}

// waiverChanges compares waivers by rule, target and last day. Prolonging
// one is therefore shown as a new waiver and one that is gone, which is how
// the approver should see it.
func waiverChanges(old, new *File, add adder) {
	key := func(w Waiver) string {
		return fmt.Sprintf("%s for %s until %s", w.Rule, cmp.Or(w.Dependency, strings.Join(w.Code, ", ")), w.Expires.Add(-time.Nanosecond).Format(time.DateOnly))
	}
	list := func(f *File) (keys []string) {
		for _, w := range f.Waivers {
			keys = append(keys, key(w))
		}
		return keys
	}
	before, after := list(old), list(new)
	for _, k := range after {
		if !slices.Contains(before, k) {
			add("", "waivers", "a new waiver lifts %s", k)
		}
	}
	for _, k := range before {
		if !slices.Contains(after, k) {
			add("", "waivers", "the waiver of %s is removed", k)
		}
	}
}

// routes lists the routes in a form that can be compared: their positions in
// the file do not count.
func routes(f *File) (all []string) {
	for _, r := range f.Gateway.Routes {
		in := r.Idempotency
		in.At = Position{}
		r.Idempotency, r.At = in, Position{}
		all = append(all, fmt.Sprintf("%+v", r))
	}
	return all
}

// trim writes a figure with at most two decimals, and none where they are
// zero.
func trim(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}
