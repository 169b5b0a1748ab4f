package check

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A waiver of code has the same faults as one of a policy; the bound of R-2 is
// the board's to lift there too. The gate does not call a waiver unused whose
// code it does not read.
func TestWaiversOfCode(t *testing.T) {
	text := strings.Replace(waived, "dependency: payments", "code: [internal/legacy/...]", 1)
	o := Options{Now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
	for _, tt := range []struct {
		rule string
		want []string
	}{
		{"R-1", []string{"FC905"}},
		{"R-2", []string{"FC905", "FC909"}},
	} {
		s := parse(t, "policy.yaml", strings.NewReplacer("R-2", tt.rule, "MAX", "3").Replace(text))
		faults, err := WaiverFaults(s.File, &s.File.Waivers[0], o)
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(faults); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.rule, got, tt.want)
		}
		if got := ids(Run([]Source{s}, o).Findings); slices.Contains(got, "FC902") || slices.Contains(got, "FC903") {
			t.Errorf("%s: got %v, want neither FC902 nor FC903", tt.rule, got)
		}
	}
}
