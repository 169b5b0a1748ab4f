package check

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/report"
)

// A baseline accepts what was there, and nothing worse in its place.
func TestBaselineHidesNothingWorse(t *testing.T) {
	const policy = "service: s\ndependencies:\n  b: {owner: s, max_retries: %s, total: %s, budget: {ratio: %s}}\n"
	route := strings.NewReplacer("HOST", "b", "NS", "n", "attempts: 2", "attempts: %s", "timeout: 10s", "timeout: %s").Replace(mesh)
	for _, tt := range []struct {
		name, file, before, after string
		want                      string // of the ids that are new
	}{
		{"policy unchanged", "p.yaml", fmt.Sprintf(policy, "9", "60s", "30%"), fmt.Sprintf(policy, "9", "60s", "30%"), ""},
		{"policy better", "p.yaml", fmt.Sprintf(policy, "9", "60s", "30%"), fmt.Sprintf(policy, "8", "50s", "25%"), ""},
		{"policy worse", "p.yaml", fmt.Sprintf(policy, "9", "60s", "30%"), fmt.Sprintf(policy, "90", "600s", "90%"), "FC102 FC201 FC202 FC505"},
		{"route unchanged", "vs.yaml", fmt.Sprintf(route, "60s", "9"), "# moved\n" + fmt.Sprintf(route, "60s", "9"), ""},
		{"route better", "vs.yaml", fmt.Sprintf(route, "60s", "9"), fmt.Sprintf(route, "50s", "6"), ""},
		{"route worse", "vs.yaml", fmt.Sprintf(route, "60s", "9"), fmt.Sprintf(route, "600s", "900"), "FC201 FC202 FC208 FC504 FC505"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reported := func(text string) *report.Report {
				read := ReadAll([]Input{{Name: tt.file, Data: []byte(text)}})
				limits := Options{Now: today, MaxAmplification: 2, MaxDuration: 50e9}
				return &report.Report{Findings: Run(read.Sources, limits).Findings}
			}
			before := reported(tt.before)
			for format, write := range map[string]func(*bytes.Buffer) error{
				"baseline": func(b *bytes.Buffer) error { return before.WriteBaseline(b) },
				"SARIF":    func(b *bytes.Buffer) error { return before.SARIF(b) },
			} {
				var b bytes.Buffer
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				known, err := report.ReadBaseline(b.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				after := reported(tt.after)
				known.Apply(after)
				ids := map[string]bool{}
				for _, f := range after.Counting() {
					ids[f.ID] = true
				}
				if got := strings.Join(slices.Sorted(maps.Keys(ids)), " "); got != tt.want {
					t.Errorf("%s: new are %q, want %q", format, got, tt.want)
				}
			}
		})
	}
}
