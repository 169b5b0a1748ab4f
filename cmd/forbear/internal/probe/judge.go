package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/wire"
)

func holds(format string, args ...any) Verdict { return Verdict{Holds, fmt.Sprintf(format, args...)} }

func fails(format string, args ...any) Verdict { return Verdict{Fails, fmt.Sprintf(format, args...)} }

func notJudged(format string, args ...any) Verdict {
	return Verdict{NotJudged, fmt.Sprintf(format, args...)}
}

func tells(format string, args ...any) Verdict { return Verdict{Told, fmt.Sprintf(format, args...)} }

// short writes a duration as people say it.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// stuck says why a run that shows one request alone cannot be judged; "" where it can.
func stuck(r *run) string {
	switch {
	case r.Fault != "":
		return r.Fault
	case r.sends() == 0 && len(r.Conns) == 0:
		return "it never called"
	case r.sends() == 0:
		return "no request arrived"
	case r.watched() && r.sends() == 1:
		return "it neither ended nor came again within " + short(r.Took)
	}
	return ""
}

// judgeHealthy learns what the client is.
func judgeHealthy(k *known, runs []run) Verdict {
	r := &runs[0]
	if why := stuck(r); why != "" {
		return notJudged("%s", why)
	}
	a := r.Arrivals[0]
	k.method, k.agent, k.header, k.ok = a.Method, a.Header.Get("User-Agent"), a.Header, r.Exit
	switch {
	case r.sends() > 1:
		return fails("a call that succeeds was sent %d times", r.sends())
	case r.Exit != 0:
		return notJudged("it ended with exit code %d after a response of 200", r.Exit)
	}
	return tells("%s, one request", a.Method)
}

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
		return fails("half of a body was taken for a whole: exit code %d", r.Exit)
	}
	return told("after half a body")(k, runs)
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
		return notJudged("the 503 before takes its only retry")
	case r.Arrivals[1].Conn != 1:
		return holds("it uses a new connection after a 503")
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

// judge401: the same credentials are refused again.
func judge401(_ *known, runs []run) Verdict {
	r := &runs[0]
	if why := stuck(r); why != "" {
		return notJudged("%s", why)
	}
	if r.sends() == 1 {
		return holds("not sent again")
	}
	first, second := r.Arrivals[0].Header.Get("Authorization"), r.Arrivals[1].Header.Get("Authorization")
	switch {
	case second == first:
		return fails("sent again with the same credentials")
	case second == "":
		return fails("sent again without credentials")
	case r.sends() > 2:
		return fails("sent %d times with new credentials", r.sends())
	}
	return holds("sent once more, with new credentials")
}

func judgeRedirect(_ *known, runs []run) Verdict {
	r := &runs[0]
	switch {
	case r.sends() == 0:
		return notJudged("%s", stuck(r))
	case len(r.Beyond) == 0:
		return holds("not followed")
	case r.Beyond[0].Header.Get("Authorization") != "" || r.Beyond[0].Header.Get("Cookie") != "":
		return fails("the credentials went to the other host")
	case r.Arrivals[0].Header.Get("Authorization") == "" && r.Arrivals[0].Header.Get("Cookie") == "":
		return notJudged("it sends no credentials that could follow")
	}
	return holds("followed without credentials")
}

// judgeEnd: with the client its requests end.
func judgeEnd(k *known, runs []run) Verdict {
	r := &runs[0]
	switch {
	case r.sends() == 0:
		return notJudged("%s", stuck(r))
	case !k.again503:
		return notJudged("nothing is sent again")
	case r.sends() > 1:
		return fails("%d requests came after its end", r.sends()-1)
	}
	return holds("none came within 4s of its end")
}

func judgeLayers(k *known, runs []run) Verdict {
	r := &runs[0]
	switch {
	case r.sends() == 0:
		return notJudged("%s", stuck(r))
	case !k.again503:
		return notJudged("nothing is sent again")
	}
	if r.watched() {
		return tells("one call became at least %d requests at the end of two layers", len(r.Beyond))
	}
	return tells("one call became %d requests at the end of two layers, %d at the end of one", len(r.Beyond), len(r.Beyond)/r.sends())
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
	case !k.again503:
		return notJudged("nothing is sent again after a response: connections that are refused leave no trace")
	case k.retries < 2:
		return notJudged("the 503 before takes its only retry")
	case k.allWaits() < 2*k.closed():
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

const keyHeader = "Idempotency-Key"

// judgePost: a POST is sent again with a key alone, the same one each time, and with the
// same bytes.
func judgePost(_ *known, runs []run) Verdict {
	r := &runs[0]
	if r.sends() < 2 {
		if why := stuck(r); why != "" {
			return notJudged("%s", why)
		}
		return holds("not sent again")
	}
	first := r.Arrivals[0]
	for _, a := range r.Arrivals {
		switch key := a.Header.Get(keyHeader); {
		case key == "":
			return fails("sent again without an idempotency key")
		case key != first.Header.Get(keyHeader):
			return fails("sent again with another idempotency key")
		case len(key) > 64:
			return fails("the key has %d characters: 64 are allowed", len(key))
		}
	}
	return sameBytes(r, "with the same key")
}

// sameBytes judges whether each request had the same body.
func sameBytes(r *run, with string) Verdict {
	for _, a := range r.Arrivals {
		if a.Body != r.Arrivals[0].Body {
			return fails("sent again with other bytes: %d instead of %d", a.Length, r.Arrivals[0].Length)
		}
	}
	return holds("sent again %s and the same %d bytes", with, r.Arrivals[0].Length)
}

func judgePut(k *known, runs []run) Verdict {
	if v := mustAgain(k, runs); v.Outcome != Holds {
		return v
	}
	return sameBytes(&runs[0], "as it was")
}

func judgeNewKey(_ *known, runs []run) Verdict {
	var keys []string
	for i := range runs {
		if why := stuck(&runs[i]); why != "" {
			return notJudged("%s", why)
		}
		keys = append(keys, runs[i].Arrivals[0].Header.Get(keyHeader))
	}
	switch {
	case keys[0] == "":
		return tells("it sends no key")
	case keys[0] == keys[1]:
		return fails("two calls had the same key")
	}
	return holds("each call had a key of its own")
}

func judgeTrusted(k *known, runs []run) Verdict {
	r := &runs[0]
	if k.trusts = r.sends() > 0; k.trusts {
		return tells("a certificate of the probe's authority is trusted")
	}
	if len(r.Conns) == 0 {
		return notJudged("it never called")
	}
	return notJudged("it does not trust the probe's authority: pass it the file {ca}")
}

func judgeCertificate(k *known, runs []run) Verdict {
	r := &runs[0]
	switch {
	case r.sends() > 0:
		return fails("the request was sent over it")
	case !k.trusts:
		return notJudged("it does not trust the probe's authority: pass it the file {ca}")
	case len(r.Conns) > 1:
		return fails("tried %d times", len(r.Conns))
	case len(r.Conns) == 0:
		return notJudged("it never called")
	case r.watched():
		return notJudged("it neither ended nor came again within %s", short(r.Took))
	}
	return holds("tried once")
}

// mostRetries is the most that R-2 allows.
const mostRetries = 5

func judgeCount(k *known, runs []run) Verdict {
	counts := counts(runs)
	if len(counts) == 0 {
		return notJudged("%s", stuck(&runs[0]))
	}
	k.again503, k.retries = slices.Max(counts) > 1, slices.Max(counts)-1
	for i := range runs {
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

func judgeTooLong(k *known, runs []run) Verdict {
	r := &runs[0]
	switch {
	case r.sends() > 1:
		return fails("sent again after %s", short(r.waits()[0]))
	case r.sends() == 1 && r.watched():
		if !k.again503 {
			return notJudged("%s", stuck(r))
		}
		return fails("it sits the wait out: no end within %s", short(r.Took))
	case stuck(r) != "":
		return notJudged("%s", stuck(r))
	case !k.again503:
		return notJudged("a 503 is never sent again")
	}
	return holds("it fails at once")
}

// judgeFloor: a wait of the server that is none does not replace the client's own.
func judgeFloor(k *known, runs []run) Verdict {
	var all []time.Duration
	for i := range runs {
		all = append(all, runs[i].waits()...)
	}
	why := stuck(&runs[0])
	switch {
	case len(all) == 0 && k.again503 && runs[0].sends() > 0:
		return fails("not sent again, and without it it is")
	case len(all) == 0:
		return notJudged("%s", cmp.Or(why, "not sent again"))
	case !k.again503:
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
	if !k.again503 {
		return notJudged("nothing is sent again")
	}
	i := slices.IndexFunc(runs, func(r run) bool { return r.sends() > 1 })
	if i < 0 {
		return notJudged("nothing is sent again")
	}
	var names []string
	list := runs[i].Arrivals
	for name := range list[1].Header {
		if values(list, name) {
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
