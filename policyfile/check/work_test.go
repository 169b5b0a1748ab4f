package check

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// These tests hold how much work a large file takes, and not how long.

// allocations counts those of one run of f; what is made once for the process has been.
func allocations(f func()) float64 { return testing.AllocsPerRun(1, f) }

// TestAlikeIsSimulatedOnce: the review of a hundred policies that are alike takes hardly
// more than that of one, and a simulated call allocates nothing.
func TestAlikeIsSimulatedOnce(t *testing.T) {
	review := func(n int) float64 {
		s := []Source{parse(t, "policy.yaml", many(1, n, false)[0])}
		r := Run(s, Options{Now: today})
		return allocations(func() { Checklist(s, r, nil, "") })
	}
	one, hundred := review(1), review(100)
	if one > 3000 {
		t.Errorf("%v allocations for one policy: want fewer than its 12,000 simulated calls", one)
	}
	if hundred-one > 300*99 {
		t.Errorf("%v allocations for a hundred, %v for one: what is alike is simulated anew", hundred, one)
	}
}

// TestCalmBreakersAreNotSimulated: a breaker that stays closed in the partial failure is
// known by looking.
func TestCalmBreakersAreNotSimulated(t *testing.T) {
	var b strings.Builder
	b.WriteString("dependencies:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  d%d: {owner: a, breaker: {failure_rate: %d.%02d%%, window: %d}}\n", i, 40+i%40, i, 60+i)
	}
	s := []Source{parse(t, "policy.yaml", b.String())}
	if n := allocations(func() { Run(s, Options{Now: today}) }) / 100; n > 100 {
		t.Errorf("%v allocations for each policy: it was simulated", n)
	}
}

// TestDistinctPoliciesAreFewSimulations: of five thousand policies with breakers of all
// kinds, those are simulated whose breakers open, and no more.
func TestDistinctPoliciesAreFewSimulations(t *testing.T) {
	s := parse(t, "policy.yaml", many(1, 5000, true)[0])
	doubts := 0
	for _, d := range s.File.All() {
		if doubtful(d.Policy.Breaker) {
			doubts++
		}
	}
	if doubts < 300 || doubts > 800 {
		t.Errorf("%d of 5000 breakers are in doubt, want about a tenth", doubts)
	}
	if n := len(alike(s.File.All(), inPartial)); n != 5000 {
		t.Errorf("%d distinct policies, want 5000", n)
	}
}

// TestWorkGrowsWithTheFile: sixteen times the dependencies, each with a fault and a
// waiver, take about sixteen times as long, and not the square of it. The limit is far
// from both, so that a busy machine does not matter.
func TestWorkGrowsWithTheFile(t *testing.T) {
	file := func(n int) Source {
		var b strings.Builder
		b.WriteString("service: s\ndependencies:\n")
		for i := range n {
			fmt.Fprintf(&b, "  d%d: {owner: s, max_retries: 9}\n", i)
		}
		b.WriteString("waivers:\n")
		for i := range n {
			fmt.Fprintf(&b, "- {id: w%d, rule: R-2, dependency: d%d, reason: r, expires: 2027-01-01}\n", i, i)
		}
		return parse(t, "policy.yaml", b.String())
	}
	small, large := file(400), file(6400)
	ratio := timesAsLong(func() { Run([]Source{large}, Options{Now: today}) }, func() { Run([]Source{small}, Options{Now: today}) })
	t.Logf("%.0f times as long", ratio)
	if ratio > 80 {
		t.Errorf("sixteen times the file takes %.1f times as long", ratio)
	}
}

// TestCalleesAreLookedAtOnce: the calls of a service are looked at once, and not once for
// each of its callers.
func TestCalleesAreLookedAtOnce(t *testing.T) {
	file := func(name, fields string) Source {
		var b strings.Builder
		fmt.Fprintf(&b, "service: %s\ndependencies:\n", name)
		for i := range 1500 {
			fmt.Fprintf(&b, "  %s%d: {owner: %s, max_retries: 1, total: 1s, %s}\n", name, i, name, fields)
		}
		return parse(t, name+".yaml", b.String())
	}
	callers, callees := file("a", "per_attempt: 1s, service: b"), file("b", "per_attempt: 100ms")
	together := func() { Run([]Source{callers, callees}, Options{Now: today}) }
	apart := func() {
		Run([]Source{callers}, Options{Now: today})
		Run([]Source{callees}, Options{Now: today})
	}
	if ratio := timesAsLong(together, apart); ratio > 10 {
		t.Errorf("caller and callee together take %.1f times as long as apart", ratio)
	}
}

// timesAsLong returns how many times as long a takes as b: measured here and now, in
// turns, the best of three rounds each. A short one may have a processor to itself where
// a long one shares it: what counts is the time of processors.
func timesAsLong(a, b func()) float64 {
	least := [2]time.Duration{time.Hour, time.Hour}
	for range 3 {
		for i, f := range []func(){a, b} {
			start := spent()
			f()
			least[i] = min(least[i], spent()-start)
		}
	}
	return float64(least[0]) / float64(least[1])
}

// TestWorkGrowsWithTexts: eight times the texts in a dump take about eight times as long,
// though each is read at its own lines.
func TestWorkGrowsWithTexts(t *testing.T) {
	dump := func(n int) func() {
		var b strings.Builder
		b.WriteString("apiVersion: v1\nkind: ConfigMap\ndata:\n")
		for i := range n {
			fmt.Fprintf(&b, "  k%d: |\n    a: 1\n    b: 2\n", i)
		}
		in := []Input{{Name: "dump.yaml", Data: []byte(b.String()), Met: true}}
		return func() { ReadAll(in) }
	}
	if ratio := timesAsLong(dump(6000), dump(750)); ratio > 19 {
		t.Errorf("eight times the texts take %.1f times as long", ratio)
	}
}
