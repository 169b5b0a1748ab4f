package api

import (
	"slices"
	"strings"
)

// Parse reads a record's text.
func Parse(text string) Record {
	r := Record{Experimental: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if module, ok := strings.CutPrefix(line, "# "); ok {
			r.Module = module
			continue
		}
		if line == "" {
			continue
		}
		r.Lines = append(r.Lines, line)
		if name, said, _ := strings.Cut(line, ": "); said == "experimental" {
			r.Experimental[name] = true
		}
	}
	return r
}

// Text writes the record as Parse reads it.
func (r Record) Text() string {
	return "# " + r.Module + "\n" + strings.Join(r.Lines, "\n") + "\n"
}

// A Difference is what a record has and another has not.
type Difference struct {
	Gone    []string // what a user may miss
	Young   []string // the same in packages that were experimental
	Growth  []string
	Settled []string // packages that are experimental no longer
}

// Compare returns what has become of a record.
func Compare(before, after Record) Difference {
	var d Difference
	for _, line := range before.Lines {
		if slices.Contains(after.Lines, line) {
			continue
		}
		name, said, _ := strings.Cut(line, ": ")
		switch {
		case said == "experimental":
			d.Settled = append(d.Settled, name)
		case before.Experimental[name]:
			d.Young = append(d.Young, line)
		default:
			d.Gone = append(d.Gone, line)
		}
	}
	for _, line := range after.Lines {
		if slices.Contains(before.Lines, line) {
			continue
		}
		// What is called experimental later is less than it was.
		if name, said, _ := strings.Cut(line, ": "); said == "experimental" && before.has(name) {
			d.Gone = append(d.Gone, line)
			continue
		}
		d.Growth = append(d.Growth, line)
	}
	return d
}

func (r Record) has(name string) bool {
	return slices.ContainsFunc(r.Lines, func(line string) bool { return strings.HasPrefix(line, name+": ") })
}

// None reports whether nothing has changed.
func (d Difference) None() bool {
	return len(d.Gone)+len(d.Young)+len(d.Growth)+len(d.Settled) == 0
}

// String lists the difference, what breaks users first.
func (d Difference) String() string {
	var b strings.Builder
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"may break users", d.Gone},
		{"gone from experimental packages", d.Young},
		{"new", d.Growth},
		{"experimental no longer", d.Settled},
	} {
		for i, line := range part.lines {
			if i == 0 {
				b.WriteString("  " + part.title + ":\n")
			}
			b.WriteString("    " + line + "\n")
		}
	}
	return b.String()
}
