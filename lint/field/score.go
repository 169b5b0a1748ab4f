package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// rules are those that the places are labelled for.
var rules = []string{"FB1001", "FB1002", "FB1030", "FB1035"}

// site is one labelled place: a loop, or a function that hands one to a
// library.
type site struct {
	module, half string
	file         string
	from, to     int // the lines that belong to it
	retry        bool
	labels       map[string]string // rule -> yes, no, or a word that leaves the rule out
	places       []string          // "file:line" elsewhere where a report may stand as well
	why          string
}

// read reads the corpus: one place a line, columns separated by tabs, the first
// line their names.
func read(name string) (sites []*site, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan()
	for n := 2; lines.Scan(); n++ {
		c := strings.Split(lines.Text(), "\t")
		if len(c) != 12 {
			return nil, fmt.Errorf("%s:%d: %d columns, want 12", name, n, len(c))
		}
		s := &site{module: c[0], half: c[1], file: c[2], retry: c[5] == "yes", labels: map[string]string{}, places: strings.Fields(c[10]), why: c[11]}
		var bad error
		if s.from, bad = strconv.Atoi(c[3]); bad == nil {
			s.to, bad = strconv.Atoi(c[4])
		}
		if bad != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, bad)
		}
		for i, r := range rules {
			s.labels[r] = c[6+i]
		}
		sites = append(sites, s)
	}
	return sites, lines.Err()
}

// holds reports whether a finding is about s. Two lines of difference are left
// to the readers, who did not see the reports.
func (s *site) holds(f finding) bool {
	if f.module != s.module {
		return false
	}
	if f.File == s.file && s.from <= f.Line && f.Line <= s.to {
		return true
	}
	return slices.ContainsFunc(s.places, func(p string) bool {
		file, at, _ := strings.Cut(p, ":")
		line, _ := strconv.Atoi(at)
		return file == f.File && line-2 <= f.Line && f.Line <= line+2
	})
}

// rank orders confidences; what is not reported has none.
var rank = map[string]int{"low": 1, "medium": 2, "high": 3}

// reported is the highest confidence with which a rule is reported at s.
func (s *site) reported(rule string, found []finding) (best int) {
	for _, f := range found {
		if f.ID == rule && s.holds(f) {
			best = max(best, rank[f.Confidence])
		}
	}
	return best
}

// score prints recall, precision at the labelled places, and the share of
// innocent places that are reported. Precision counts one rule at one place
// once.
func score(w io.Writer, sites []*site, found []finding, list bool) {
	fmt.Fprintf(w, "%d places in %d modules\n\n", len(sites), modules(sites))
	fmt.Fprintf(w, "%-8s %6s %6s %8s   %6s %8s\n", "rule", "there", "high", "recall", "medium", "recall")
	var right, wrong [4]int
	for _, rule := range rules {
		there, hit := 0, [4]int{}
		for _, s := range sites {
			got := s.reported(rule, found)
			switch s.labels[rule] {
			case "yes":
				there++
				hit[got]++
				right[got]++
				if list && got < 3 {
					fmt.Fprintf(w, "missed %s %s %s:%d (%d) %s\n", rule, s.module, s.file, s.from, got, s.why)
				}
			case "no":
				wrong[got]++
				if list && got > 1 {
					fmt.Fprintf(w, "FALSE  %s %s %s:%d (%d) %s\n", rule, s.module, s.file, s.from, got, s.why)
				}
			}
		}
		fmt.Fprintf(w, "%-8s %6d %6d %8s   %6d %8s\n", rule, there, hit[3], share(hit[3], there), hit[3]+hit[2], share(hit[3]+hit[2], there))
	}
	fmt.Fprintf(w, "\ntrue at high %d of %d (%s), with medium %d of %d (%s)\n",
		right[3], right[3]+wrong[3], share(right[3], right[3]+wrong[3]),
		right[3]+right[2], right[3]+right[2]+wrong[3]+wrong[2], share(right[3]+right[2], right[3]+right[2]+wrong[3]+wrong[2]))
	innocent, accused := 0, 0
	for _, s := range sites {
		if slices.ContainsFunc(rules, func(r string) bool { return s.labels[r] != "no" }) {
			continue
		}
		innocent++
		if slices.ContainsFunc(rules, func(r string) bool { return s.reported(r, found) > 1 }) {
			accused++
		}
	}
	fmt.Fprintf(w, "innocent places reported %d of %d (%s)\n", accused, innocent, share(accused, innocent))
	outside(w, sites, found, list)
}

// outside counts the findings of high confidence that no labelled place holds:
// they are to be judged by reading.
func outside(w io.Writer, sites []*site, found []finding, list bool) {
	n := 0
	for _, f := range found {
		if rank[f.Confidence] < 3 || slices.ContainsFunc(sites, func(s *site) bool { return slices.Contains(rules, f.ID) && s.holds(f) }) {
			continue
		}
		n++
		if list {
			fmt.Fprintf(w, "other  %s %s %s:%d %s\n", f.ID, f.module, f.File, f.Line, f.Message)
		}
	}
	fmt.Fprintf(w, "other findings of high confidence: %d\n", n)
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}

func modules(sites []*site) int {
	seen := map[string]bool{}
	for _, s := range sites {
		seen[s.module] = true
	}
	return len(seen)
}
