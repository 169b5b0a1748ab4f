package check

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// These tests hold how much work a large file takes, and not how long.

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
