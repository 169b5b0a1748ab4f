package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// table is that of docs/clients.md: a row for each set-up.
func table(list []*report) string {
	var b strings.Builder
	if len(list) > 0 {
		newest := slices.MaxFunc(list, func(a, b *report) int { return a.taken.Compare(b.taken) })
		fmt.Fprintf(&b, "This table is of %s.\n\n", newest.taken.Format(time.DateOnly))
	}
	b.WriteString("| | language | does not hold | retries | waits | statuses sent again | `POST` again without a key | `Retry-After: 100` | expired |\n|---|---|--:|--:|---|---|---|---|--:|\n")
	for _, r := range list {
		fmt.Fprintf(&b, "| [%s](clients/%s.md) | %s | %d | %s | %s | %s | %s | %s | %s |\n",
			r.title(), r.of.Name, r.language, len(r.failed()), r.retries(), r.waits(), orNone(r.again()), r.resent(), r.heeds(), r.expired())
	}
	return b.String()
}

func (r *report) title() string { return strings.TrimSpace(r.name + " " + r.version) }

// again are the statuses after which a request was sent again.
func (r *report) again() (list []string) {
	for i := range r.Cases {
		c := &r.Cases[i]
		part := strings.Split(c.ID, "/")
		if len(part) > 1 && part[0] == "R-4" && status.MatchString(part[1]) && len(c.Runs) > 0 && len(c.Runs[0].Arrivals) > 1 {
			list = append(list, part[1])
		}
	}
	return list
}

// status is one of HTTP or of gRPC.
var status = regexp.MustCompile(`^([45]\d\d|[A-Z_]+)$`)

// resent are the failures after which a POST without a key was sent again, and "" where no
// POST was sent.
func (r *report) resent() string {
	if !slices.ContainsFunc(postFailures, func(after string) bool { return r.outcome("R-6/"+after+"/POST") != "" }) {
		return ""
	}
	return orNone(r.posts())
}

var postFailures = []string{"503", "reset", "hang"}

func (r *report) posts() (list []string) {
	for _, after := range postFailures {
		if r.outcome("R-6/"+after+"/POST") == "fails" {
			list = append(list, after)
		}
	}
	return list
}

// retries is how often a call that meets failures alone was sent again.
func (r *report) retries() string {
	least, most := 1<<30, -1
	for run := range 24 {
		if n := r.sends("R-2/outage", run); n > 0 {
			least, most = min(least, n-1), max(most, n-1)
		}
	}
	switch {
	case most < 0:
		return ""
	case least == most:
		return strconv.Itoa(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// waits are the ceilings of the waits, and their law.
func (r *report) waits() string {
	if r.Law == nil {
		return ""
	}
	var list []string
	for _, c := range r.Law.Ceilings {
		list = append(list, round(c).String())
	}
	if r.Law.Law.Name == "no wait" {
		return "none"
	}
	if len(list) > 4 {
		list = append(list[:4], "...")
	}
	return strings.Join(list, ", ") + "; " + r.Law.Law.Name
}

// round leaves the first two digits of a time.
func round(d time.Duration) time.Duration {
	unit := time.Millisecond
	for d/unit >= 100 {
		unit *= 10
	}
	return d.Round(unit)
}

// heeds is what a wait of the server that is too long makes of a call.
func (r *report) heeds() string {
	for _, id := range []string{"R-5/too-long", "R-5/pushback-too-long"} {
		switch {
		case r.outcome(id) == "holds":
			return "fails at once"
		case r.sends(id, 0) > 1:
			return "ignored"
		case r.outcome(id) == "fails":
			return "waits"
		}
	}
	return ""
}

// expired is how often an expired certificate was tried.
func (r *report) expired() string {
	for i := range r.Cases {
		c := &r.Cases[i]
		switch {
		case c.ID != "R-9/expired":
		case len(c.Runs) > 0 && c.Outcome != "not judged":
			return fmt.Sprint(len(c.Runs[0].Conns))
		default:
			return "not judged"
		}
	}
	return ""
}

// orNone joins a list, which may be empty.
func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}
