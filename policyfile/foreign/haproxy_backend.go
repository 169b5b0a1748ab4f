package foreign

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
)

// haproxyRetries is HAProxy's default number of retries: when a connection
// fails, and for what retry-on lists.
const haproxyRetries = 3

// haproxyWait is the longest that HAProxy waits before it connects to the same
// server again: a second, or less if timeout connect is less.
const haproxyWait = time.Second

// backend judges a section. One without servers retries nothing.
func (r *reader) backend(p *proxy, verify configLine) {
	if !slices.ContainsFunc(p.servers, func(l configLine) bool { return l.words[0] != "default-server" }) {
		return
	}
	d := policyfile.Dependency{Name: p.name, At: p.at, Protocol: "http", Service: p.host()}
	on, said := p.lines["retry-on"]
	// tcp is the default. A file that has no defaults may be one of several, and one
	// that sets retry-on is about HTTP.
	http := p.argument("mode") == "http" || p.argument("mode") == "" && said
	if !http {
		d.Protocol, said = "tcp", false
	}
	count, at := haproxyRetries, p.at
	if l, ok := p.lines["retries"]; ok {
		n, err := strconv.Atoi(p.argument("retries"))
		if count, at = n, l.at; err != nil {
			count = 0
			r.open(at, &d, "%s: retries %s is unknown here", d.Name, p.argument("retries"))
		}
	}
	// retry-on none leaves no retries, whatever retries says.
	if said && slices.Contains(on.words, "none") {
		count, at, d.AtLeast = 0, on.at, false
	}
	if p.open.Line > 0 {
		r.open(p.open, &d, "%s: this line sets retries under a condition, and is not judged", d.Name)
	}
	retries(&d, count, at)
	verified := r.haproxyTLS(&d, p, verify)
	repeats := said && r.retryOn(&d, on, p)
	r.haproxyTimes(&d, p, http, repeats)
	if d.Policy.Disabled && !d.AtLeast {
		d.Lacks = append(d.Lacks, "budget", "total.missing")
		r.add(d)
		return
	}
	// These hold for every HAProxy: no setting changes them.
	r.cannot(&d, "R-7", "budget", "HAProxy has no retry budget: failures are retried as often as retries says, whatever the load")
	r.cannot(&d, "R-1", "", "HAProxy waits at most a second after a failed connection, and does not wait before another server or after a response")
	r.cannot(&d, "R-3", "total.missing", "HAProxy cannot bound a request and its retries together")
	// Only these come with a Retry-After that would be passed over.
	if repeats && slices.ContainsFunc(on.words, func(w string) bool { return slices.Contains([]string{"429", "503", "all-retryable-errors"}, w) }) {
		r.cannot(&d, "R-5", "", "HAProxy ignores Retry-After: a server that asks for a pause is called again at once")
	}
	if verified {
		r.cannot(&d, "R-9", "", "HAProxy retries when a certificate is refused")
	}
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{haproxyWait}}
	r.add(d)
}

// host is the name that all servers have, or "".
func (p *proxy) host() string {
	name := ""
	for _, l := range p.servers {
		i := 2
		if l.words[0] == "server-template" {
			i = 3
		}
		if l.words[0] == "default-server" || len(l.words) <= i {
			continue
		}
		host := hostOnly(l.words[i])
		if isAddress(host) || unset(host) || name != "" && name != host {
			return ""
		}
		name = host
	}
	return name
}

// haproxyTLS judges how servers are verified: one without is enough for an attacker.
// verified reports whether a certificate may be refused at all.
func (r *reader) haproxyTLS(d *policyfile.Dependency, p *proxy, global configLine) (verified bool) {
	type state struct {
		on     bool
		verify string
		at     policyfile.Position
	}
	var base state
	if len(global.words) > 1 {
		base.verify, base.at = global.words[1], global.at
	}
	said := map[policyfile.Position]bool{}
	for _, l := range p.servers {
		s, skip := base, 3 // the server's name and its address
		switch l.words[0] {
		case "default-server":
			skip = 1
		case "server-template":
			skip = 4
		}
		words := l.words[min(skip, len(l.words)):]
		for i, w := range words {
			switch {
			case w == "ssl":
				s.on = true
			case w == "no-ssl":
				s.on = false
			case w == "verify" && i+1 < len(words):
				s.verify, s.at = words[i+1], l.at
			}
		}
		if l.words[0] == "default-server" {
			base = s
			continue
		}
		switch {
		case !s.on || said[s.at]:
		case s.verify == "none":
			said[s.at] = true
			r.refuse(s.at, "R-9", d, "tls.verify", "verify none accepts any certificate")
		case unset(s.verify):
			said[s.at] = true
			r.unjudged(s.at, d.Name, "%s: verify %s is unknown here", d.Name, s.verify)
		}
		verified = verified || s.on && s.verify != "none"
	}
	return verified
}

// haproxyTimes works out the longest call: connecting is tried again, and what
// retry-on lists as well. Without a time-out HAProxy waits for ever.
func (r *reader) haproxyTimes(d *policyfile.Dependency, p *proxy, http, repeats bool) {
	d.Longest = math.MaxInt64
	connect, ok := r.haproxyTimeout(d, p, "timeout connect")
	if !ok {
		return
	}
	server := time.Duration(0)
	d.Policy.PerAttempt = connect
	if http {
		if server, ok = r.haproxyTimeout(d, p, "timeout server"); !ok {
			return
		}
		d.SetPlace("per_attempt", p.lines["timeout server"].at)
		d.Policy.PerAttempt = server
	}
	again := connect + min(connect, haproxyWait)
	if repeats {
		again = max(again, connect+server)
	}
	// A count may be absurd, and is a finding of its own.
	const most = 100 * 365 * 24 * time.Hour
	n := time.Duration(min(d.Policy.Retries(), 1<<20))
	if n > 0 && again > most/n {
		return
	}
	d.Longest = n*again + connect + server
}

// haproxyTimeout reads a time-out. Zero and none are no bound.
func (r *reader) haproxyTimeout(d *policyfile.Dependency, p *proxy, keyword string) (time.Duration, bool) {
	value := p.argument(keyword)
	if value == "" {
		return 0, false
	}
	t, ok := haproxyTime(value)
	if !ok {
		r.unjudged(p.lines[keyword].at, d.Name, "%s: %s %s is unknown here", d.Name, keyword, value)
	}
	return t, ok && t > 0
}

// haproxyOn are those of retry-on. HAProxy 2.6 has neither 421 nor 429.
var haproxyOn = []string{
	"none", "conn-failure", "empty-response", "junk-response", "response-timeout", "0rtt-rejected", "all-retryable-errors",
	"401", "403", "404", "408", "421", "425", "429", "500", "501", "502", "503", "504",
}

// retryOn judges what HAProxy retries beyond failed connections, and reports whether
// it does. Nothing of this holds when there are no retries.
func (r *reader) retryOn(d *policyfile.Dependency, on configLine, p *proxy) (repeats bool) {
	if d.Policy.Disabled && !d.AtLeast {
		return false
	}
	for _, word := range on.words[1:] {
		r.terminals(on.at, d, word, "")
		if unset(word) {
			r.unjudged(on.at, d.Name, "%s: retry-on %s is unknown here", d.Name, word)
		}
		if !slices.Contains(haproxyOn, word) {
			r.misspelt(on.at, d, word, "is not a word of retry-on, and HAProxy refuses the file", meant(word, haproxyOn))
		}
		// But for none, these happen before the request has been sent.
		repeats = repeats || !slices.Contains([]string{"conn-failure", "0rtt-rejected", "none"}, word)
	}
	if !repeats {
		return false
	}
	var open []string
	for _, method := range []string{"POST", "PATCH"} {
		if !p.guarded(method) {
			open = append(open, method)
		}
	}
	if len(open) > 0 {
		r.refuse(on.at, "R-6", d, "methods", "retry-on repeats %s, with or without an Idempotency-Key: add http-request disable-l7-retry if { method %s }",
			strings.Join(open, " and "), strings.Join(open, " "))
	}
	return true
}
