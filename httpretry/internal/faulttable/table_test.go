package faulttable

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/faults.md")

const (
	table = "testdata/faults.md"
	page  = "../../../docs/http-faults.md"
)

// section is a part of the table.
type section struct {
	title  string
	faults []fault
	alone  bool // its cases change the process and do not run beside others
}

var sections = []section{
	{title: "Responses", faults: responses},
	{title: "New connections", faults: connections},
	{title: "Pooled connections", faults: pooled},
	{title: "Time, and bodies under way", faults: timing},
	{title: "HTTP/2", faults: streams},
	{title: "The process", faults: []fault{replaced}, alone: true},
}

// TestFaultTable runs every case through plain net/http and through forbear.
func TestFaultTable(t *testing.T) {
	known := tableRows(t)
	rows := map[string]finding{}
	var mu sync.Mutex
	t.Run("cases", func(t *testing.T) {
		for _, s := range sections {
			for i := range s.faults {
				f := &s.faults[i]
				t.Run(f.name, func(t *testing.T) {
					if !s.alone {
						t.Parallel()
					}
					row := f.row(t, s.alone)
					mu.Lock()
					defer mu.Unlock()
					rows[f.name] = row
				})
			}
		}
	})
	for _, s := range sections {
		for i := range s.faults {
			f := &s.faults[i]
			row, ran := rows[f.name]
			// A busy machine may be slower than an attempt may take: what is not as it
			// should be is looked at again with nothing beside it.
			for n := 0; n < 3 && ran && (row.complaint != "" || !*update && !slices.Contains(known, row.text)); n++ {
				t.Logf("%s, again: %s\n%s", f.name, row.complaint, row.text)
				row = f.row(t, true)
			}
			rows[f.name] = row
			if row.complaint != "" {
				t.Errorf("%s: %s", f.name, row.complaint)
			}
			if ran && !*update && !slices.Contains(known, row.text) {
				t.Errorf("%s: the table has another row than\n%s", f.name, row.text)
			}
		}
	}
	if *update {
		write(t, rows)
	}
}

// tableRows returns the lines of the table.
func tableRows(t *testing.T) []string {
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "\n")
}

// TestTableHasNoOtherRows holds the table to the cases that there are.
func TestTableHasNoOtherRows(t *testing.T) {
	names, n := map[string]bool{}, 0
	for _, s := range sections {
		for _, f := range s.faults {
			if names[f.name] {
				t.Errorf("two cases are called %q", f.name)
			}
			names[f.name] = true
		}
	}
	for _, line := range tableRows(t) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| case ") {
			continue
		}
		if n++; !names[name] {
			t.Errorf("the table has a row for %q, which is not a case", name)
		}
	}
	if n != len(names) {
		t.Errorf("the table has %d rows, want %d", n, len(names))
	}
}

// TestPage holds the counts of docs/http-faults.md to the table.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	title := ""
	cases, verdicts := map[string]int{}, map[string]map[verdict]int{}
	for _, line := range tableRows(t) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			title, verdicts[heading] = heading, map[verdict]int{}
		}
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 8 || cells[0] == "| case" {
			continue
		}
		cases[title]++
		verdicts[title][verdict(cells[7])]++
	}
	for _, s := range sections {
		v := verdicts[s.title]
		row := fmt.Sprintf("| %s | %d | %d | %d | %d |", s.title, cases[s.title], v[better], v[same], v[forbidden])
		if !strings.Contains(string(data), row) {
			t.Errorf("%s lacks the row %s", page, row)
		}
	}
}

// finding is the case's row of the table, and what is wrong with it whatever the
// table says.
type finding struct{ text, complaint string }

// row runs the case.
func (f *fault) row(t *testing.T, alone bool) finding {
	var plain, forbear outcome
	if alone {
		plain, forbear = f.run(t, true), f.run(t, false)
	} else {
		done := make(chan struct{})
		go func() { defer close(done); plain = f.run(t, true) }()
		forbear = f.run(t, false)
		<-done
	}
	v := f.compare(plain, forbear)
	complaint := ""
	switch {
	case v == worse:
		complaint = fmt.Sprintf("worse than net/http: %s after %d sends, net/http %s after %d", forbear.result, forbear.sends, plain.result, plain.sends)
	case f.forbidden && v != forbidden:
		complaint = fmt.Sprintf("%s: no rule needs to forbid what net/http does", v)
	}
	sent := "–"
	if !f.uncounted {
		sent = pair(plain.bytes, forbear.bytes)
	}
	often, dialed := count(plain.sends), pair(plain.connections, forbear.connections)
	if f.undialed {
		dialed = "–"
	}
	if f.endless {
		often, sent, dialed = "no bound", "–", "–"
	}
	cells := []string{
		f.name, plain.result, often, forbear.result, count(forbear.sends), sent, dialed, string(v), f.why,
	}
	return finding{"| " + strings.Join(cells, " | ") + " |", complaint}
}

func pair(plain, forbear int) string { return fmt.Sprintf("%d / %d", plain, forbear) }

// write makes the table anew.
func write(t *testing.T, rows map[string]finding) {
	var b strings.Builder
	b.WriteString(preamble)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n", s.title)
		b.WriteString("| case | net/http | sends | forbear | sends | bytes | connections | verdict | why |\n")
		b.WriteString("|---|---|--:|---|--:|--:|--:|---|---|\n")
		for _, f := range s.faults {
			if rows[f.name].text == "" {
				t.Fatalf("%s did not run: -update needs all of the cases", f.name)
			}
			b.WriteString(rows[f.name].text + "\n")
		}
	}
	if err := os.WriteFile(table, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

const preamble = `# HTTP faults: plain net/http and forbear

Written by its test, which fails when a row changes or when forbear is worse. docs/http-faults.md says what the columns
mean.

    go test ./httpretry/internal/faulttable -update
`
