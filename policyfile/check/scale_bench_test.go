package check

import (
	"fmt"
	"strings"
	"testing"
)

// many returns policy files with so many dependencies in all. Where they are distinct,
// no two have the same policy, and a quarter of their breakers is in doubt.
func many(files, dependencies int, distinct bool) (texts []string) {
	for f := range files {
		var b strings.Builder
		fmt.Fprintf(&b, "service: service-%d\ninstances: 20\ndependencies:\n", f)
		for i := f * dependencies / files; i < (f+1)*dependencies/files; i++ {
			n := 0
			if distinct {
				n = i
			}
			fmt.Fprintf(&b, `  dependency-%d:
    owner: service-%d
    methods: [GET, POST]
    idempotency: generate
    max_retries: %d
    per_attempt: 2s
    total: %dms
    backoff: {base: %dms, cap: %dms}
    budget: {ratio: %.2f%%, min_retries: %d}
    breaker: {failure_rate: %.2f%%, window: %d, min_calls: %d, window_time: %ds, open_for: %ds, probes: %d}
`, i, f, 1+n%5, 15_000+n, 100+n%397, 5_000+n*7%20_011, 5+float64(n%1499)/100, 1+n%10,
				25+float64(n%7499)/100, 50+n%451, 10+n%41, 10+n%111, 5+n%56, 1+n%9)
		}
		texts = append(texts, b.String())
	}
	return texts
}

// BenchmarkFiveThousand judges five thousand dependencies, reading included.
func BenchmarkFiveThousand(b *testing.B) {
	for _, files := range []int{1, 250} {
		for _, distinct := range []bool{false, true} {
			texts := many(files, 5_000, distinct)
			for _, checklist := range []bool{false, true} {
				b.Run(fmt.Sprintf("files=%d/distinct=%v/checklist=%v", files, distinct, checklist), func(b *testing.B) {
					for b.Loop() {
						var sources []Source
						for i, text := range texts {
							s, err := Read(fmt.Sprintf("%d.yaml", i), []byte(text))
							if err != nil {
								b.Fatal(err)
							}
							sources = append(sources, s)
						}
						if r := Run(sources, Options{Now: today}); checklist {
							Checklist(sources, r, nil, "")
						}
					}
				})
			}
		}
	}
}
