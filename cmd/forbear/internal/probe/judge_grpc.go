package probe

import (
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/edge/grpcwire"
)

// judgeZero: gRFC A6 has the call sent again at once, and the wait of the client's own backoff
// does no harm.
func judgeZero(k *known, runs []run) Verdict {
	for i := range runs {
		if r := &runs[i]; r.sends() > 1 {
			return holds("sent again after %s", short(r.waits()[0]))
		}
	}
	switch {
	case runs[0].sends() == 0:
		return notJudged("%s", stuck(&runs[0]))
	case !k.sentAgain:
		return notJudged("not sent again")
	}
	return fails("not sent again, and without it it is")
}

// judgeBytes: a message that is sent again is the same.
func judgeBytes(_ *known, runs []run) Verdict {
	i := slices.IndexFunc(runs, func(r run) bool { return r.sends() > 1 })
	if i < 0 {
		return notJudged("nothing is sent again")
	}
	return sameBytes(&runs[i], "as it was")
}

// judgeKeys: the call may be repeated without a key. Where it has one, it is that of the call:
// the same in each attempt, and another in another call.
func judgeKeys(_ *known, runs []run) Verdict {
	seen := map[string]bool{}
	for i := range runs {
		for n, a := range runs[i].Arrivals {
			switch key := a.Header.Get(keyHeader); {
			case key != runs[i].Arrivals[0].Header.Get(keyHeader):
				return fails("sent again with another idempotency key")
			case len(key) > 64:
				return fails("the key has %d characters: 64 are allowed", len(key))
			case n == 0 && key != "" && seen[key]:
				return fails("two calls had the same key")
			case key != "":
				seen[key] = true
			}
		}
	}
	if len(seen) == 0 {
		return tells("it sends no key")
	}
	return holds("each call had a key of its own, the same each time")
}

// timeoutHeader has the time that is left to a call of gRPC, as [http.Header] spells it.
const timeoutHeader = "Grpc-Timeout"

// judgeDeadline tells whose the deadlines are that the server learns of. No rule asks for
// them.
func judgeDeadline(_ *known, runs []run) Verdict {
	var list []time.Duration
	for i := range runs {
		if got := deadlines(&runs[i]); len(got) > len(list) {
			list = got
		}
	}
	if len(list) == 0 {
		return tells("it sends none")
	}
	var text []string
	for _, d := range list {
		text = append(text, short(d))
	}
	words := "each attempt has one of its own: "
	switch {
	case len(list) == 1:
		words = ""
	case list[0]-list[1] > 5*time.Millisecond:
		words = "attempts share that of the call: "
	}
	return tells("%s%s", words, strings.Join(text, ", "))
}

// deadlines are those that the first requests of a run were sent with.
func deadlines(r *run) (list []time.Duration) {
	for _, a := range r.Arrivals {
		d, ok := grpcwire.ParseTimeout(a.Header[timeoutHeader])
		if !ok {
			break
		}
		list = append(list, d)
	}
	return list
}
