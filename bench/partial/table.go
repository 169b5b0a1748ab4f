package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

func printTable(title, corner string, rows []row, list []contender) {
	fmt.Printf("\n### %s\n\n| %s |", title, corner)
	for _, c := range list {
		if strings.HasPrefix(c.name, nameForbear) {
			fmt.Printf(" **%s** |", c.name)
		} else {
			fmt.Printf(" %s |", c.name)
		}
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat("--:|", len(list)))
	for _, r := range rows {
		fmt.Printf("| %s |", r.fault.name)
		for _, f := range r.cells {
			fmt.Printf(" %.1f, %.2f |", 100*f.success(), f.sendsACall())
		}
		fmt.Println()
	}
}

// printPace says how many of the calls that the pace asks for did start, by the
// contender that never makes a caller wait: when they are much fewer, the
// machine was too busy.
func printPace(rows []row, list []contender, o options) {
	wanted := float64(o.callers) * o.length.Seconds() / o.every.Seconds()
	if j := named(list, nameNone); j >= 0 {
		fmt.Printf("\nThe machine kept up with %.0f %% of the pace.\n", 100*float64(rows[0].cells[j].calls)/wanted)
	}
}

var errMissed = errors.New("a goal is missed")

// The goals of forbear with its default policy, beside the points of success
// that each fault allows.
const (
	mostSends    = 1.25 // a call
	mostInOutage = 0.05 // sends a call, once the breaker has opened
	openedWithin = 100  // sends
	openFor      = 5 * time.Second
)

// goals compares forbear with itself without a breaker. Three standard errors
// are allowed for: the runs are short.
func goals(o options, rows []row, list []contender) (missed error) {
	with, without := named(list, nameForbear), named(list, nameUnbroken)
	if with < 0 || without < 0 {
		return nil
	}
	for _, r := range rows {
		a, b := r.cells[with], r.cells[without]
		miss := func(format string, args ...any) {
			missed = errors.Join(missed, fmt.Errorf("%w: %s: %s", errMissed, r.fault.name, fmt.Sprintf(format, args...)))
		}
		if s := float64(a.sends-openedWithin) / float64(max(a.calls, 1)); r.fault.share == 1 && s > mostInOutage {
			miss("%.3f sends a call after it opened, want at most %v", s, mostInOutage)
		}
		if s := a.sendsACall(); s > mostSends {
			miss("%.2f sends a call, want at most %v", s, mostSends)
		}
		allowed := r.fault.allowed
		if r.fault.opens {
			allowed += openFor.Seconds() / r.fault.length(o.length).Seconds()
		}
		noise := 3 * math.Hypot(deviation(a), deviation(b))
		if under := b.success() - a.success(); allowed >= 0 && under > allowed+noise {
			miss("%.1f points under no breaker, want at most %.1f and %.1f of noise", 100*under, 100*allowed, 100*noise)
		}
	}
	return missed
}

func named(list []contender, name string) int {
	return slices.IndexFunc(list, func(c contender) bool { return c.name == name })
}

// deviation is the standard error of the success.
func deviation(f figures) float64 {
	p := f.success()
	return math.Sqrt(p * (1 - p) / float64(max(f.calls, 1)))
}
