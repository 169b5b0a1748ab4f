package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/terminal"
)

// tries returns how many servers are asked at most, or at least when open. at is
// where that is said.
func (u *nginxUnit) tries(at policyfile.Position) (n int, from policyfile.Position, open bool) {
	n, open = max(u.upstream.servers, 1), u.upstream.open != ""
	limit, ok := u.get("next_upstream_tries")
	if !ok {
		return n, at, open
	}
	most, err := strconv.Atoi(limit.arg())
	switch {
	case err != nil: // a template's: it cannot make nginx try more servers than there are
		return n, limit.at, open
	case most <= 0: // no limit
		return n, limit.at, open
	case open:
		return most, limit.at, false
	}
	return min(n, most), limit.at, false
}

// nextUpstream judges when and for how long the next server is tried.
func (u *nginxUnit) nextUpstream(words []string, at policyfile.Position) {
	d := &u.dep
	if !u.stream {
		u.words(words, at)
	}
	u.r.cannot(d, "R-7", "budget", "nginx has no retry budget: failures go to the next server, whatever the load")
	// Only these come with a Retry-After that would be passed over.
	if !u.stream && (slices.Contains(words, "http_429") || slices.Contains(words, "http_503")) {
		u.r.cannot(d, "R-5", "", "nginx ignores Retry-After: a server that asks for a pause is called again at once")
	}
	u.r.cannot(d, "R-1", "", "nginx calls the next server at once, without a wait")
	// A schedule is the only form that can say so: a base of zero means the default.
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{0}}
	limit, ok := u.get("next_upstream_timeout")
	if ok {
		at = limit.at
		if d.Policy.Total, ok = nginxTime(limit.arg()); !ok {
			u.unread(limit)
			d.Lacks = append(d.Lacks, "total.missing")
			return
		}
	}
	d.SetPlace("total", at)
	// Zero is nginx's default and means no limit.
	if d.Policy.Total == 0 {
		why := ""
		if !ok {
			why = ", the default" + u.unless()
		}
		u.r.refuse(at, "R-3", d, "total.missing", "%s is 0%s: nothing bounds the tries in time", u.name("next_upstream_timeout"), why)
		return
	}
	// It bounds when a try may begin, and the last one goes on.
	d.Longest = min(d.Longest, d.Policy.Total+u.attempt)
	if d.AtLeast {
		d.Longest = d.Policy.Total + u.attempt
	}
}

// maybe notes the words that break a rule if there is a second address after all.
func (u *nginxUnit) maybe(words []string, at policyfile.Position) {
	for _, word := range words {
		rule := ""
		switch {
		case nginxTerminal(word):
			rule = "R-4"
		case word == "non_idempotent" && u.writes != writesEnd:
			rule = "R-6"
		default:
			continue
		}
		u.note(at, u.dep.Name, fmt.Sprintf("%s_next_upstream %s breaks %s as soon as %s has a second address", u.module.prefix, word, rule, u.dep.Name))
	}
}

// nginxNext are those of proxy_next_upstream and the like. invalid_response and not_found are
// memcached's; denied came with nginx 1.29.
var nginxNext = []string{
	"error", "timeout", "denied", "invalid_header", "invalid_response", "http_500", "http_502", "http_503", "http_504", "http_403", "http_404", "http_429",
	"not_found", "updating", "non_idempotent", "off",
}

// nginxTerminal reports whether a word stands for a failure that R-4 does not retry.
func nginxTerminal(word string) bool {
	status, ok := strings.CutPrefix(word, "http_")
	code, err := strconv.Atoi(status)
	return word == "not_found" || ok && err == nil && terminal.Status(code) != terminal.Retryable
}

// words judges for what failures the next server is tried.
func (u *nginxUnit) words(words []string, at policyfile.Position) {
	d := &u.dep
	for _, word := range words {
		switch {
		case unset(word):
			u.note(at, d.Name, fmt.Sprintf("%s %s is unknown here", u.name("next_upstream"), word))
		case !slices.Contains(nginxNext, word):
			u.r.misspelt(at, d, word, "is not a word of "+u.name("next_upstream")+", and nginx refuses the file", meant(word, nginxNext))
		case nginxTerminal(word):
			u.r.refuse(at, "R-4", d, "classify."+word, "%s is retried: the same request gets the same response", word)
		// Without this word nginx repeats no POST, LOCK or PATCH.
		case word == "non_idempotent" && u.writes == writesArrive:
			u.r.refuse(at, "R-6", d, "methods", "non_idempotent repeats POST, with or without an Idempotency-Key")
		case word == "non_idempotent" && u.writes == writesMayArrive:
			u.note(at, d.Name, "non_idempotent repeats POST, with or without an Idempotency-Key, unless the method conditions here exclude it")
		}
	}
}
