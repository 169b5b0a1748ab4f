package httpretry

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// rateLimit reads the RateLimit field of the IETF draft, a list such as
// `"default";r=0;t=30`: the longest t of the items that have nothing left. An
// item without r counts as used up. Up to its seventh version the draft had one
// dictionary instead, `limit=100, remaining=0, reset=30`, which is still widely
// sent. Malformed fields are ignored, as the draft asks.
func rateLimit(value string) (d time.Duration, ok bool) {
	var older quota
	for item := range strings.SplitSeq(value, ",") {
		name, parameters, _ := strings.Cut(item, ";")
		if !older.read(name, "remaining", "reset") {
			return 0, false
		}
		var q quota
		for p := range strings.SplitSeq(parameters, ";") {
			if !q.read(p, "r", "t") {
				return 0, false
			}
		}
		if wait, used := q.wait(); used {
			d, ok = max(d, wait), true
		}
	}
	if wait, used := older.wait(); used {
		d, ok = max(d, wait), true
	}
	return d, ok
}

// quota is what is left of one limit, and for how many seconds it stays so.
type quota struct {
	remaining, reset int64
	known            bool // reset was there
}

// read takes "name=number" if the name is one of the two, and reports whether
// it could.
func (q *quota) read(text, remaining, reset string) bool {
	name, number, _ := strings.Cut(strings.Trim(text, " \t"), "=")
	if name != remaining && name != reset {
		return true
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !digits(number) {
		return false
	}
	if name == remaining {
		q.remaining = n
	} else {
		q.reset, q.known = n, true
	}
	return true
}

// wait returns how long the quota is used up; false when it is not, or when it
// does not say for how long.
func (q *quota) wait() (time.Duration, bool) {
	if q.remaining > 0 || !q.known {
		return 0, false
	}
	return decimal(strconv.FormatInt(q.reset, 10), time.Second)
}

// quotaLeft reports whether what remains of a limit is above zero. While it is, the
// end of the limit's window is not a reason to wait.
func quotaLeft(remaining []string) bool {
	n, known := quotaOf(remaining)
	return known && n > 0
}

// quotaOf returns what remains of a limit, as far as that is said.
func quotaOf(remaining []string) (n float64, known bool) {
	if len(remaining) == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(remaining[0]), 64)
	return n, err == nil && !math.IsNaN(n)
}

// limitReset reads the headers of a server that has one limit, or one policy for its
// limits. Of X-RateLimit-Reset and X-RateLimit-Reset-After (Discord), which say the same,
// the latter needs no clock.
func limitReset(h http.Header, now time.Time, status int) (time.Duration, bool) {
	var l longest
	for _, v := range h["Ratelimit"] {
		l.add(rateLimit(v))
	}
	for _, v := range h["Ratelimit-Reset"] {
		if status == http.StatusTooManyRequests || !quotaLeft(h["Ratelimit-Remaining"]) {
			l.add(anyForm(v, h, now))
		}
	}
	if quotaLeft(h["X-Ratelimit-Remaining"]) {
		return l.wait, l.ok
	}
	var after longest
	for _, v := range h["X-Ratelimit-Reset-After"] {
		after.add(decimal(v, time.Second))
	}
	if after.ok {
		l.add(after.wait, true)
		return l.wait, l.ok
	}
	for _, v := range h["X-Ratelimit-Reset"] {
		l.add(anyForm(v, h, now))
	}
	return l.wait, l.ok
}

// severalLimits are the headers of servers that limit requests and tokens apart: OpenAI
// and those that follow it, and Anthropic.
var severalLimits = [...]struct{ reset, remaining string }{
	{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests"},
	{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens"},
	{"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Requests-Remaining"},
	{"Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Input-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Output-Tokens-Reset", "Anthropic-Ratelimit-Output-Tokens-Remaining"},
}

// limitResets reads when the limits of such a server are whole again. The latest of
// those that are used up counts, since the others are not why the call failed: a wait
// for the end of the wrong one, an hour away perhaps, would end the call at once. A
// limit that does not say what remains counts where none is known to be used up.
func limitResets(h http.Header, now time.Time) (time.Duration, bool) {
	var used, unknown longest
	for _, limit := range severalLimits {
		for _, v := range h[limit.reset] {
			wait, readable := anyForm(v, h, now)
			switch n, known := quotaOf(h[limit.remaining]); {
			case !known:
				unknown.add(wait, readable)
			case n <= 0:
				used.add(wait, readable)
			}
		}
	}
	if used.ok {
		return used.wait, true
	}
	return unknown.wait, unknown.ok
}
