package truth

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the figures of docs/simulator-truth.md, of more runs")

const page = "../../../../../docs/simulator-truth.md"

// The parts of the page that are written: the rows of its table, and how many figures agree.
var (
	rows     = regexp.MustCompile(`(?m)^\|---.*\n(?:\|.*\n)+`)
	sentence = regexp.MustCompile(`(?m)^Of \d+ .*$`)
)

// write puts the figures into the page.
func write(t *testing.T, all []*situation, exact, large score) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	lines.WriteString("|---|---|---|---|---|---|---|\n")
	for _, s := range all {
		lines.WriteString(s.row() + "\n")
	}
	text = rows.ReplaceAllLiteral(text, []byte(lines.String()))
	text = sentence.ReplaceAllLiteral(text, fmt.Appendf(nil, "O%v. At scale: %v.", exact.String()[1:], large))
	if err := os.WriteFile(page, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// row is the line of a situation in the table. What does not agree is bold.
func (s *situation) row() string {
	var row strings.Builder
	row.WriteString("|" + s.Description)
	for i, form := range [...]string{good: "%.3f", sends: "%.3f", peak: "%.0f", p50: "%.0f", p99: "%.0f", recovery: "%.1f"} {
		p, r := column(s.exact, i), column(s.real, i)
		cell := s.cell(form, i, p) + "→" + s.cell(form, i, r)
		if math.IsNaN(mean(p)) {
			cell = ""
		} else if compare(p, r) >= far {
			cell = "**" + cell + "**"
		}
		row.WriteString("|" + cell)
	}
	return row.String() + "|"
}

// cell writes the mean of one figure. A run that never recovered counts as the time after its
// faults, and says so when there is no other.
func (s *situation) cell(form string, figure int, values []float64) string {
	if left := s.Duration - lastFault(&s.Scenario); figure == recovery && slices.Min(values) >= left.Seconds() {
		return "never"
	}
	return fmt.Sprintf(form, mean(values))
}

// The page has the situations of testdata, and says how many there are.
func TestPageNamesTheSituations(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.SplitSeq(string(rows.Find(text)), "\n") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok && !strings.HasPrefix(name, "---") {
			got = append(got, name)
		}
	}
	for _, s := range situations(t) {
		want = append(want, s.Description)
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/simulator-truth.md has the situations\n%q\nand testdata\n%q: make truth", got, want)
	}
	if !sentence.Match(text) {
		t.Error("docs/simulator-truth.md does not say how many figures agree")
	}
}
