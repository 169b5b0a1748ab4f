package forrst

import (
	"bytes"
	"fmt"
	"strings"
)

// diffContext is how many unchanged lines stand around a change, as in diff
// -u.
const diffContext = 3

// hunk is a run of changed lines: old[from:to] becomes text. Lines count
// from 0.
type hunk struct {
	from, to int
	text     []string
}

// Diff returns the changes as a unified diff that patch(1) applies, or ""
// when there are none. It needs no search for common lines, since the edits
// are known.
func (m *Migration) Diff(name string) string {
	if len(m.edits) == 0 {
		return ""
	}
	old := lines(m.from)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, name)
	moved := 0 // how many lines the hunks so far have added
	group := []hunk{}
	flush := func() {
		if len(group) > 0 {
			moved += writeHunks(&b, old, group, moved)
			group = group[:0]
		}
	}
	// Changes with a short distance between them share one header, as in
	// diff -u.
	for _, h := range m.hunks() {
		if len(group) > 0 && h.from-group[len(group)-1].to > 2*diffContext {
			flush()
		}
		group = append(group, h)
	}
	flush()
	return b.String()
}

// hunks turns the edits, which lie anywhere in a line, into runs of whole
// lines. Edits that touch the same line become one run.
func (m *Migration) hunks() []hunk {
	var all []hunk
	for i := 0; i < len(m.edits); {
		begin := bytes.LastIndexByte(m.from[:m.edits[i].start], '\n') + 1
		end := lineEnd(m.from, m.edits[i].end)
		j := i + 1
		for j < len(m.edits) && m.edits[j].start < end {
			end = lineEnd(m.from, m.edits[j].end)
			j++
		}
		shifted := make([]edit, 0, j-i)
		for _, e := range m.edits[i:j] {
			shifted = append(shifted, edit{e.start - begin, e.end - begin, e.text})
		}
		before, after := lines(m.from[begin:end]), lines(apply(m.from[begin:end], shifted))
		from := bytes.Count(m.from[:begin], []byte("\n"))
		to := from + len(before)
		// Lines that an edit left as they were are no change.
		for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
			before, after, from = before[1:], after[1:], from+1
		}
		for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
			before, after, to = before[:len(before)-1], after[:len(after)-1], to-1
		}
		all = append(all, hunk{from, to, after})
		i = j
	}
	return all
}

// lineEnd returns the end of the line that holds the byte before at, its line
// feed included.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// lines splits text after its line feeds.
func lines(text []byte) (all []string) {
	for line := range bytes.Lines(text) {
		all = append(all, string(line))
	}
	return all
}

// writeHunks writes neighboring hunks under one header, and returns by how
// many lines they change the length: later headers count from there.
func writeHunks(b *strings.Builder, old []string, group []hunk, moved int) (grown int) {
	from := max(group[0].from-diffContext, 0)
	to := min(group[len(group)-1].to+diffContext, len(old))
	for _, h := range group {
		grown += len(h.text) - (h.to - h.from)
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", from+1, to-from, from+1+moved, to-from+grown)
	at := from
	for _, h := range group {
		write(b, " ", old[at:h.from])
		write(b, "-", old[h.from:h.to])
		write(b, "+", h.text)
		at = h.to
	}
	write(b, " ", old[at:to])
	return grown
}

// write writes lines under a sign. A last line without a line feed is marked
// as such, in the way that patch expects.
func write(b *strings.Builder, sign string, lines []string) {
	for _, line := range lines {
		b.WriteString(sign + line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
