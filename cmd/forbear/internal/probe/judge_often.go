package probe

import (
	"fmt"
	"slices"
	"time"
)

// judgeEnd: with the client its requests end.
func judgeEnd(k *known, runs []run) Verdict {
	r := &runs[0]
	if why := k.unseen(r); why != "" {
		return notJudged("%s", why)
	}
	late := 0
	for _, a := range r.Arrivals { // what it sends at once may overtake the signal
		if r.Asked > 0 && a.At > r.Asked+stray {
			late++
		}
	}
	if late > 0 {
		return fails("%d requests came after its end", late)
	}
	return holds("none came within 4s of its end")
}

// mostRetries is the most that R-2 allows.
const mostRetries = 5

func judgeCount(k *known, runs []run) Verdict {
	counts := counts(runs)
	if len(counts) == 0 {
		return notJudged("%s", stuck(&runs[0]))
	}
	k.sentAgain, k.retries = slices.Max(counts) > 1, slices.Max(counts)-1
	for i := range runs {
		k.lingers = max(k.lingers, runs[i].lingers())
		if runs[i].watched() && runs[i].sends() > 1 {
			return fails("after %s it had sent %d requests, and went on", short(runs[i].Took), runs[i].sends())
		}
	}
	text := fmt.Sprint(slices.Min(counts) - 1)
	if slices.Min(counts) != slices.Max(counts) {
		text += fmt.Sprint(" to ", slices.Max(counts)-1)
	}
	switch most := slices.Max(counts) - 1; {
	case most == 0:
		return tells("no retries")
	case most > mostRetries:
		return fails("%s retries: 1 to %d are allowed", text, mostRetries)
	}
	return holds("%s retries", text)
}

// counts are the numbers of requests in those runs that have sent any.
func counts(runs []run) (list []int) {
	for i := range runs {
		if n := runs[i].sends(); n > 0 {
			list = append(list, n)
		}
	}
	return list
}

func judgeTotal(_ *known, runs []run) Verdict {
	longest := time.Duration(0)
	for i := range runs {
		r := &runs[i]
		if r.sends() == 0 {
			continue
		}
		longest = max(longest, r.Arrivals[r.sends()-1].At-r.Arrivals[0].At)
		if r.watched() {
			return fails("the call had no end after %s", short(r.Took))
		}
	}
	if longest > maxTotal {
		return fails("the last request of a call came %s after its first", short(longest))
	}
	return holds("the last request came %s after the first at most", short(longest))
}

func judgeAttempt(_ *known, runs []run) Verdict {
	r := &runs[0]
	if r.sends() == 0 {
		return notJudged("%s", stuck(r))
	}
	if gone := r.Arrivals[0].Gone; gone > 0 {
		return holds("an attempt ends after %s", short(gone-r.Arrivals[0].At))
	}
	return fails("an attempt has no end within %s", short(r.Took))
}

func judgeMultiplier(k *known, runs []run) Verdict {
	counts := counts(runs)
	if len(counts) == 0 {
		return notJudged("it never called")
	}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return tells("%.1f requests for each call of %d side by side, each in a process of its own: a budget of one process cannot be seen", float64(sum)/float64(len(counts)), len(counts))
}
