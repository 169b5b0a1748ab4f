package verb

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
)

// JSON writes v as a line of JSON, when that is the format, and reports whether it
// is. Text is written by the caller otherwise. One item a line: a list can be piped
// into jq or split by lines.
func (r *Run) JSON(v any) bool {
	if r.Format != "json" {
		return false
	}
	enc := json.NewEncoder(r.Out)
	enc.SetEscapeHTML(false) // payloads are shown as they are
	_ = enc.Encode(v)        // a closed pipe is the reader's choice, as with head
	return true
}

// Say writes a result: v as a line of JSON, or the text.
func (r *Run) Say(v any, format string, args ...any) {
	if !r.JSON(v) {
		fmt.Fprintln(r.Out, cli.Printable(fmt.Sprintf(format, args...)))
	}
}

// Table writes a list: a line of JSON for each item, or a table.
type Table struct {
	Rows int // so far

	r    *Run
	head string
	w    *tabwriter.Writer
}

// Table returns a table. Its head, whose columns are separated by spaces and have _ for
// one, comes before the first row. It must be flushed.
func (r *Run) Table(head string) *Table {
	return &Table{r: r, head: head, w: tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', 0)}
}

// Add adds an item as its row.
func (t *Table) Add(item any, row ...any) {
	t.Rows++
	if t.r.JSON(item) {
		return
	}
	t.Head()
	cells := make([]string, len(row))
	for i, v := range row {
		cells[i] = Cell(v)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// Head writes the head, unless it is written.
func (t *Table) Head() {
	if t.head != "" {
		fmt.Fprintln(t.w, strings.ReplaceAll(strings.Join(strings.Fields(t.head), "\t"), "_", " "))
		t.head = ""
	}
}

// Flush writes the rows so far. Columns are aligned between two calls.
func (t *Table) Flush() { _ = t.w.Flush() }

// More says how a list goes on behind a full page. That may be the last one: to know,
// another query would be needed.
func (r *Run) More(after any) {
	fmt.Fprintf(r.Err, "forbear: %s: there may be more: add --after %v\n", r.Name, after)
}

// Cell returns a value as a table shows it. Text comes from senders: without control
// characters it cannot steer the operator's terminal.
func Cell(v any) string {
	switch v := v.(type) {
	case time.Time:
		return v.Format(time.RFC3339)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return cli.Printable(fmt.Sprint(v))
	}
}
