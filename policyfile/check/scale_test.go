package check

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// large returns a policy file with twenty dependencies.
func large(n int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "service: service-%d\ninstances: 20\nprofiles:\n  ours: {budget: {ratio: 10%%, window: 60s}, total: 20s}\ndependencies:\n", n)
	for i := range 20 {
		fmt.Fprintf(&b, `  dependency-%d:
    url: https://dependency-%d.internal/v1
    extends: ours
    owner: service-%d
    methods: [GET, POST]
    idempotency: generate
    max_retries: 3
    per_attempt: 2s
    backoff: {base: 200ms, cap: 5s}
    breaker: {failure_rate: 50%%, open_for: 30s}
    classify: {http_425: retry}
`, i, i, n)
	}
	return []byte(b.String())
}

// A thousand files of twenty dependencies are read and judged together in at
// most three times the time that the YAML library alone needs. Both are measured here and now, so
// that it is a ratio and not a time; the best of five rounds counts.
func TestThousandFiles(t *testing.T) {
	const files, rounds = 1000, 5
	data := make([][]byte, files)
	for i := range data {
		data[i] = large(i)
	}
	best := 1e9
	for range rounds {
		bare, ours := time.Duration(0), time.Duration(0)
		sources := make([]Source, 0, files)
		for _, d := range data { // in turns, so that a busy machine slows both
			start := time.Now()
			var n yaml.Node
			loader, err := yaml.NewLoader(bytes.NewReader(d))
			if err != nil {
				t.Fatal(err)
			}
			if err := loader.Load(&n); err != nil {
				t.Fatal(err)
			}
			between := time.Now()
			s, err := Read("policy.yaml", d)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, s)
			bare += between.Sub(start)
			ours += time.Since(between)
		}
		start := time.Now()
		if got := Run(sources, Options{Now: today}); len(got.Loads) != 20*files {
			t.Fatalf("%d loads", len(got.Loads))
		}
		ours += time.Since(start)
		if best = min(best, float64(ours)/float64(bare)); best <= 3 {
			break
		}
	}
	t.Logf("%.2f times the time of the bare parse", best)
	if best > 3 {
		t.Errorf("%.2f times the time of the bare parse, want at most 3", best)
	}
}
