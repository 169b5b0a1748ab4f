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

// Each of many files of twenty dependencies is read and judged whole. What that costs beside the
// bare parse is counted in allocations, which do not depend on the machine; BenchmarkThousandFiles
// has the time.
func TestManyFiles(t *testing.T) {
	const files = 20
	data := make([][]byte, files)
	for i := range data {
		data[i] = large(i)
	}
	bare := testing.AllocsPerRun(1, func() { bareParse(t, data) })
	ours := testing.AllocsPerRun(1, func() {
		if got := judge(t, data); len(got.Loads) != 20*files {
			t.Fatalf("%d loads", len(got.Loads))
		}
	})
	if ours > 2.7*bare {
		t.Errorf("%.0f allocations, the bare parse %.0f", ours, bare)
	}
}

// BenchmarkThousandFiles reads and judges a thousand files; x-parse is its time in those of the bare
// parse, of which both were taken in turns.
func BenchmarkThousandFiles(b *testing.B) {
	data := make([][]byte, 1000)
	for i := range data {
		data[i] = large(i)
	}
	var bare, ours time.Duration
	for b.Loop() {
		start := time.Now()
		bareParse(b, data)
		between := time.Now()
		judge(b, data)
		bare += between.Sub(start)
		ours += time.Since(between)
	}
	b.ReportMetric(float64(ours)/float64(bare), "x-parse")
}

// bareParse has the YAML library read the files, no more.
func bareParse(t testing.TB, data [][]byte) {
	for _, d := range data {
		var n yaml.Node
		loader, err := yaml.NewLoader(bytes.NewReader(d))
		if err != nil {
			t.Fatal(err)
		}
		if err := loader.Load(&n); err != nil {
			t.Fatal(err)
		}
	}
}

// judge checks the files together.
func judge(t testing.TB, data [][]byte) *Result {
	var sources []Source
	for _, d := range data {
		s, err := Read("policy.yaml", d)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, s)
	}
	return Run(sources, Options{Now: today})
}
