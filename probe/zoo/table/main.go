// Command table writes what forbear probe saw of the clients of the zoo into two pages,
// between marks: a table into docs/clients.md, and its sums into docs/compare.md.
//
//	go run ./probe/zoo/table probe/zoo/.cache/reports/*.json
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// report is what the table needs of a report of forbear probe.
type report struct {
	name    string
	version string
	Cases   []struct {
		ID      string `json:"id"`
		Outcome string `json:"outcome"`
		Runs    []struct {
			Conns    []struct{} `json:"connections"`
			Arrivals []struct{} `json:"arrivals"`
			Exit     int        `json:"exit"`
		} `json:"runs"`
	} `json:"cases"`
	Law *struct {
		Law      struct{ Name string } `json:"law"`
		Ceilings []time.Duration       `json:"ceilings_ns"`
	} `json:"law"`
}

func main() {
	list, err := read(os.Args[1:])
	if err == nil {
		err = cmp.Or(write("docs/clients.md", table(list)), write("docs/compare.md", sums(list)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

const begin, end = "<!-- begin: make zoo -->\n", "<!-- end: make zoo -->\n"

// write puts text between the marks of a page.
func write(page, insert string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(text, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for it, between %q and %q", page, begin, end)
	}
	return os.WriteFile(page, slices.Concat(head, []byte(begin), []byte(insert), []byte(end), tail), 0o644)
}

// read reads the reports of those clients that called.
func read(files []string) (list []*report, err error) {
	for _, file := range files {
		r := &report{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, r)
		}
		if err != nil {
			return nil, err
		}
		v, _ := os.ReadFile(strings.TrimSuffix(file, ".json") + ".version")
		r.version = regexp.MustCompile(`\d+(\.\d+)*`).FindString(string(v))
		if r.sends("healthy", 0) > 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *report) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

// sums says how many of the clients do what.
func sums(list []*report) string {
	count := func(is func(r *report) bool) (n int) {
		for _, r := range list {
			if is(r) {
				n++
			}
		}
		return n
	}
	retry := count(func(r *report) bool { return r.retries() != "0" })
	return strings.ReplaceAll(fmt.Sprintf(`- Of %d set-ups of clients, %d retry a 503. Of these, %d use full jitter, and %d do not wait at all.
- %d try an expired certificate more than once.
- %d send a 'POST' without an idempotency key again.
- %d fail at once when 'Retry-After' is 100 seconds; %d sit it out, and %d come earlier.
`,
		len(list), retry,
		count(func(r *report) bool { return r.Law != nil && r.Law.Law.Name == "full jitter" }),
		count(func(r *report) bool { return r.Law != nil && r.Law.Law.Name == "no wait" }),
		count(func(r *report) bool { return r.outcome("R-9/expired") == "fails" && r.expired() > "1" }),
		count(func(r *report) bool { return len(r.posts()) > 0 }),
		count(func(r *report) bool { return r.heeds() == "fails at once" }),
		count(func(r *report) bool { return r.heeds() == "waits" }),
		count(func(r *report) bool { return r.heeds() == "ignored" })), "'", "`")
}

func table(list []*report) string {
	var b strings.Builder
	b.WriteString("| | retries | waits | statuses sent again | `POST` again without a key | `Retry-After: 100` | expired |\n|---|--:|---|---|---|---|--:|\n")
	for _, r := range list {
		b.WriteString(r.row())
	}
	return b.String()
}

// outcome is that of a case, or "".
func (r *report) outcome(id string) string {
	for i := range r.Cases {
		if r.Cases[i].ID == id {
			return r.Cases[i].Outcome
		}
	}
	return ""
}

// sends is how many requests came in a run of a case.
func (r *report) sends(id string, run int) int {
	for i := range r.Cases {
		if c := &r.Cases[i]; c.ID == id && len(c.Runs) > run {
			return len(c.Runs[run].Arrivals)
		}
	}
	return 0
}

func (r *report) row() string {
	var again []string
	for i := range r.Cases {
		c := &r.Cases[i]
		part := strings.Split(c.ID, "/")
		if len(part) == 3 && part[0] == "R-4" && part[1] >= "400" && part[1] < "600" && len(c.Runs) > 0 && len(c.Runs[0].Arrivals) > 1 {
			again = append(again, part[1])
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", strings.TrimSpace(r.name+" "+r.version), r.retries(), r.waits(), dash(again), dash(r.posts()), r.heeds(), r.expired())
}

// posts are the failures after which a POST without a key was sent again.
func (r *report) posts() (list []string) {
	for _, after := range []string{"503", "reset", "hang"} {
		if r.outcome("R-6/"+after+"/POST") == "fails" {
			list = append(list, after)
		}
	}
	return list
}

func (r *report) retries() string {
	least, most := 1<<30, 0
	for run := range 24 {
		if n := r.sends("R-2/outage", run); n > 0 {
			least, most = min(least, n-1), max(most, n-1)
		}
	}
	switch {
	case most == 0:
		return "0"
	case least == most:
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func (r *report) waits() string {
	if r.Law == nil {
		return ""
	}
	var list []string
	for _, c := range r.Law.Ceilings {
		unit := time.Millisecond
		for c/unit >= 100 {
			unit *= 10
		}
		list = append(list, c.Round(unit).String())
	}
	if r.Law.Law.Name == "no wait" {
		return "none"
	}
	if len(list) > 4 {
		list = append(list[:4], "...")
	}
	return strings.Join(list, ", ") + "; " + r.Law.Law.Name
}

func (r *report) heeds() string {
	switch {
	case r.outcome("R-5/too-long") == "holds":
		return "fails at once"
	case r.sends("R-5/too-long", 0) > 1:
		return "ignored"
	case r.outcome("R-5/too-long") == "fails":
		return "waits"
	}
	return ""
}

func (r *report) expired() string {
	for i := range r.Cases {
		if c := &r.Cases[i]; c.ID == "R-9/expired" && len(c.Runs) > 0 && c.Outcome != "not judged" {
			return fmt.Sprint(len(c.Runs[0].Conns))
		}
	}
	return "not judged"
}

func dash(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}
