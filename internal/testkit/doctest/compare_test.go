package doctest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// TestCompareHasTheMeasuredFigures holds docs/compare.md to the pages of bench: each row
// of a table is, cell by cell, in one row of the page that its section links to last. What
// clients do has its figures on the page itself.
func TestCompareHasTheMeasuredFigures(t *testing.T) {
	const page = "docs/compare.md"
	var measured [][]string // the rows of the page linked to
	rows := 0
	section := ""
	for i, line := range strings.Split(read(t, page), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			measured, section = nil, heading
		}
		for _, m := range aLink.FindAllStringSubmatch(line, -1) {
			name, _, _ := strings.Cut(m[1], "#")
			if name = path.Join("docs", name); path.Base(name) == "README.md" {
				measured = tables(read(t, name))
			}
		}
		for _, row := range tables(line) {
			if section == "" || section == "What clients do" { // the list of what there is
				continue
			}
			rows++
			if !slices.ContainsFunc(measured, func(m []string) bool {
				return !slices.ContainsFunc(row, func(cell string) bool { return !slices.Contains(m, cell) })
			}) {
				t.Errorf("%s:%d: no such row was measured: %s", page, i+1, line)
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d rows: the tables were not found", rows)
	}
}

// tables returns the cells of the rows of text's tables, heads included.
func tables(text string) (rows [][]string) {
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows
}
