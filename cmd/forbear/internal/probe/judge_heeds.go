package probe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/wire"
)

func judgeLayers(k *known, runs []run) Verdict {
	r := &runs[0]
	if why := k.unseen(r); why != "" {
		return notJudged("%s", why)
	}
	if r.watched() {
		return tells("one call became at least %d requests at the end of two layers", len(r.Beyond))
	}
	return tells("one call became %d requests at the end of two layers, %d at the end of one", len(r.Beyond), len(r.Beyond)/r.sends())
}

// atLeast judges whether the server's wait was kept.
func atLeast(least time.Duration) func(*known, []run) Verdict {
	return func(k *known, runs []run) Verdict {
		r := &runs[0]
		if r.sends() < 2 {
			if why := stuck(r); why != "" {
				return notJudged("%s", why)
			}
			return notJudged("not sent again")
		}
		if got := r.waits()[0]; got < least-earlyTimer {
			return fails("sent again after %s, and not after %s", short(got), short(least))
		}
		if k.firstWait() > least {
			return notJudged("its own wait is as long: %s", short(r.waits()[0]))
		}
		return holds("sent again after %s", short(r.waits()[0]))
	}
}

// earlyTimer is how much too early a timer may fire.
const earlyTimer = 2 * time.Millisecond

// comesBack reports whether a failure that names a wait is sent again: some clients do so
// because of that alone.
func (k *known) comesBack() bool {
	runs := k.runsByID[k.heeded]
	return k.sentAgain || len(runs) > 0 && runs[0].sends() > 1
}

func judgeTooLong(k *known, runs []run) Verdict {
	r := &runs[0]
	switch {
	case r.sends() > 1:
		return fails("sent again after %s", short(r.waits()[0]))
	case r.sends() == 1 && r.watched():
		if !k.comesBack() {
			return notJudged("%s", stuck(r))
		}
		return fails("it sits the wait out: no end within %s", short(r.Took))
	case stuck(r) != "":
		return notJudged("%s", stuck(r))
	case !k.comesBack():
		return notJudged("%s is never sent again", k.failure)
	}
	if sat := r.lingers(); sat > k.lingers+sits {
		return fails("it does not fail at once: it ended %s after the response", short(sat))
	}
	return holds("it fails at once")
}

// sits is how much longer than after its last retry a client may take to end: one that waits
// for its own deadline, or for as long as that leaves, takes longer.
const sits = 500 * time.Millisecond

// judgeFloor: a wait of the server that is none does not replace the client's own.
func judgeFloor(k *known, runs []run) Verdict {
	var all []time.Duration
	for i := range runs {
		all = append(all, runs[i].waits()...)
	}
	why := stuck(&runs[0])
	switch {
	case len(all) == 0 && k.sentAgain && runs[0].sends() > 0:
		return fails("not sent again, and without it it is")
	case len(all) == 0:
		return notJudged("%s", cmp.Or(why, "not sent again"))
	case !k.sentAgain:
		return notJudged("it is sent again because of the header alone")
	}
	// Means: a client may be late once, and full jitter may be short once.
	got, usual := mean(all), mean(slices.Concat(k.waits[:min(2, len(k.waits))]...))
	switch {
	case usual < atOnce:
		return tells("it hardly waits in any case")
	case got < usual/4:
		return fails("sent again after %s on average, and without it after %s: what a server says is a floor under the backoff", short(got), short(usual))
	}
	return holds("it waits as it does without: %s on average", short(got))
}

func mean(list []time.Duration) (sum time.Duration) {
	for _, d := range list {
		sum += d / time.Duration(len(list))
	}
	return sum
}

// atOnce is longer than it takes to send again without a wait.
const atOnce = 20 * time.Millisecond

// judgeHeaders finds headers that count the attempts of a call.
func judgeHeaders(k *known, runs []run) Verdict {
	i := slices.IndexFunc(runs, func(r run) bool { return r.sends() > 1 })
	if i < 0 {
		return notJudged("nothing is sent again")
	}
	var names []string
	list := runs[i].Arrivals
	for name := range list[1].Header {
		if name != timeoutHeader && values(list, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return tells("none")
	}
	slices.Sort(names)
	return tells("%s", strings.Join(names, ", "))
}

// values reports whether the first value of a header differs between the first two requests.
func values(list []wire.Arrival, name string) bool {
	return list[0].Header.Get(name) != list[1].Header.Get(name)
}
