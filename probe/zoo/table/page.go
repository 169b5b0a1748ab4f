package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// generated is the first line of a page that this command writes, and may remove.
const generated = "<!-- make zoo writes this page from the reports of forbear probe. -->\n"

// writePages writes a page for each client into a folder, and removes those of clients that
// are gone.
func writePages(dir string, list []*report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	for _, name := range old {
		text, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(text), generated) {
			err = os.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	of := map[*client][]*report{}
	for _, r := range list {
		of[r.of] = append(of[r.of], r)
	}
	for c, reports := range of {
		if err := os.WriteFile(filepath.Join(dir, c.Name+".md"), []byte(page(c, reports)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// page is the page of a client: its set-ups, and what to write instead.
func page(c *client, reports []*report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# %s\n\n[forbear probe](../probe.md) put this client into failures and judged what it sent. [All clients](../clients.md) are in one table.\n", generated, c.Name)
	for _, r := range reports {
		fmt.Fprintf(&b, "\n## %s\n\n", r.title())
		r.does(&b)
	}
	if len(c.Advice) == 0 {
		return b.String()
	}
	b.WriteString("\n## What to write instead\n\n")
	for _, rule := range slices.Sorted(maps.Keys(c.Advice)) {
		fmt.Fprintf(&b, "- %s: %s\n", rule, c.Advice[rule])
	}
	fmt.Fprintf(&b, "\nRead in version %s:\n\n", c.Version)
	for _, s := range c.Sources {
		fmt.Fprintf(&b, "- <%s>\n", s)
	}
	return b.String()
}

// does writes what a set-up does, and its policy file.
func (r *report) does(b *strings.Builder) {
	fmt.Fprintf(b, "[%s](../../probe/zoo/%[1]s), in %s, is started by:\n\n```text\n%s\n```\n\n", r.script, r.language, r.command)
	fails := r.failed()
	item := func(what, is string) {
		if is != "" {
			fmt.Fprintf(b, "- %s: %s\n", what, is)
		}
	}
	item("Verdicts", fmt.Sprintf("%d hold, %d do not, %d could not be judged", r.count("holds"), len(fails), r.count("not judged")))
	item("Retries", r.retries())
	item("Waits", r.waits())
	item("Sent again after", orNone(r.again()))
	item("Requests for each call in an outage", r.multiplier())
	item("Longest call in an outage", r.longest())
	if len(fails) > 0 {
		fmt.Fprintf(b, "\nWhat does not hold:\n\n```text\n%s\n```\n", strings.Join(fails, "\n"))
	}
	if r.Policy != "" {
		_, policy, _ := strings.Cut(r.Policy, "\n") // without the User-Agent, which names the machine
		fmt.Fprintf(b, "\nIts policy file, as `forbear probe -o policy` writes it:\n\n```yaml\n%s```\n", policy)
	}
}

// failed are the cases that do not hold, a line each, by rule.
func (r *report) failed() (lines []string) {
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Outcome == "fails" {
			lines = append(lines, fmt.Sprintf("%s  %s: %s", c.Rule, c.Title, c.Why))
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[:len("R-1")], b[:len("R-1")]) })
	return lines
}

func (r *report) count(outcome string) (n int) {
	for i := range r.Cases {
		if r.Cases[i].Outcome == outcome {
			n++
		}
	}
	return n
}

// outage calls f with the times of the requests of each call that met failures alone.
func (r *report) outage(f func(first, last time.Duration, sends int)) {
	for i := range r.Cases {
		if r.Cases[i].ID != "R-2/outage" {
			continue
		}
		for _, run := range r.Cases[i].Runs {
			if n := len(run.Arrivals); n > 0 {
				f(run.Arrivals[0].At, run.Arrivals[n-1].At, n)
			}
		}
	}
}

// multiplier is how many requests a call becomes when all fail.
func (r *report) multiplier() string {
	calls, sum := 0, 0
	r.outage(func(_, _ time.Duration, sends int) { calls, sum = calls+1, sum+sends })
	if calls == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(sum)/float64(calls))
}

// longest is the longest time between the first request of a call and its last.
func (r *report) longest() string {
	longest, calls := time.Duration(0), 0
	r.outage(func(first, last time.Duration, _ int) { longest, calls = max(longest, last-first), calls+1 })
	if calls == 0 || longest == 0 {
		return ""
	}
	return fmt.Sprintf("%s from the first request to the last", round(longest))
}
