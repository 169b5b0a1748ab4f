package probe

import (
	"slices"
	"time"
)

// mustAgain: the failure is one that is retried.
func mustAgain(_ *known, runs []run) Verdict {
	r := &runs[0]
	if why := stuck(r); why != "" {
		return notJudged("%s", why)
	}
	if r.sends() > 1 {
		return holds("sent again after %s", short(r.waits()[0]))
	}
	return fails("not sent again")
}

// mustNot: it is one that is not.
func mustNot(_ *known, runs []run) Verdict {
	r := &runs[0]
	if r.sends() > 1 {
		return fails("sent again after %s", short(r.waits()[0]))
	}
	if why := stuck(r); why != "" {
		return notJudged("%s", why)
	}
	return holds("not sent again")
}

// told makes a judge of what no rule speaks of.
func told(after string) func(*known, []run) Verdict {
	return func(_ *known, runs []run) Verdict {
		r := &runs[0]
		if why := stuck(r); why != "" {
			return notJudged("%s", why)
		}
		if r.sends() > 1 {
			return tells("sent again %s, after %s", after, short(r.waits()[0]))
		}
		return tells("not sent again %s", after)
	}
}

func judgeHalf(k *known, runs []run) Verdict {
	r := &runs[0]
	if r.sends() == 1 && r.Exit == k.ok {
		return fails("half of a response was taken for a whole: exit code %d", r.Exit)
	}
	return told("after half a response")(k, runs)
}

func judgeHang(k *known, runs []run) Verdict {
	r := &runs[0]
	if r.sends() == 1 && r.watched() {
		return notJudged("the attempt has no end within %s: see R-3/attempt", short(r.Took))
	}
	return mustAgain(k, runs)
}

func judgeStale(k *known, runs []run) Verdict {
	r := &runs[0]
	switch {
	case stuck(r) != "":
		return notJudged("%s", stuck(r))
	case r.sends() == 1:
		return notJudged("no second request shows it")
	case k.retries < 2:
		return notJudged("the %s before takes its only retry", k.failure)
	case r.Arrivals[1].Conn != 1:
		return holds("it uses a new connection after %s", k.failure)
	case r.sends() == 2:
		return fails("the call ends when its kept connection does")
	}
	return holds("sent again after %s", short(r.waits()[1]))
}

func judge2(k *known, runs []run) Verdict {
	r := &runs[0]
	if r.sends() > 0 && r.Arrivals[0].Proto != "HTTP/2.0" {
		return notJudged("it speaks %s alone", r.Arrivals[0].Proto)
	}
	return mustAgain(k, runs)
}

// judgeRefused: a wait later the port is still closed. Who comes when it is open again has
// come back after a refusal.
func judgeRefused(k *known, runs []run) Verdict {
	ended := 0
	for i := range runs {
		r := &runs[i]
		if r.sends() > 1 {
			return holds("sent again after a refusal, %s after the request before", short(r.waits()[0]))
		}
		if r.sends() == 1 && !r.watched() {
			ended++
		}
	}
	switch {
	case !k.sentAgain:
		return notJudged("nothing is sent again after a response: connections that are refused leave no trace")
	case k.retries < 2:
		return notJudged("the %s before takes its only retry", k.failure)
	case k.allWaits() < 2*k.closed()+k.redials:
		return notJudged("its retries are over before a port can be open again")
	case ended == 0:
		return notJudged("%s", stuck(&runs[0]))
	}
	return fails("not sent again")
}

// firstWait is the longest wait before a first retry.
func (k *known) firstWait() time.Duration {
	if len(k.law.Ceilings) > 0 {
		return k.law.Ceilings[0]
	}
	if len(k.waits) == 0 {
		return 0
	}
	return slices.Max(k.waits[0])
}

// allWaits is about the longest time that all waits of a call take.
func (k *known) allWaits() (sum time.Duration) {
	for _, of := range k.waits {
		sum += slices.Max(of)
	}
	return sum
}

// closed is how long a port is closed so that the first retry is refused.
func (k *known) closed() time.Duration {
	return k.firstWait()*115/100 + k.law.Late + 100*time.Millisecond
}
