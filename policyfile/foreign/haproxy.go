package foreign

import (
	"maps"
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

// haproxySections begin a section of haproxy.cfg, haproxyWords are some of what
// stands in one.
var (
	haproxySections = []string{"global", "defaults", "frontend", "backend", "listen"}
	haproxyKeywords = []string{"mode", "server", "timeout", "bind", "balance", "option", "log", "maxconn", "default_backend", "use_backend", "http-request", "acl", "retries", "stats", "daemon"}
)

// speaksHAProxy reports whether a text begins with a section of haproxy.cfg that
// has a keyword of its.
func speaksHAProxy(_ string, data []byte) (bool, *policyfile.Fault) {
	opened := false
	for text := range strings.Lines(string(data)) {
		words := haproxyWords(text)
		switch {
		case len(words) == 0:
		case slices.Contains(haproxySections, words[0]) && (len(words) > 1 || words[0] == "global" || words[0] == "defaults"):
			opened = true
		case !opened:
			return false, nil
		case slices.Contains(haproxyKeywords, words[0]):
			return true, nil
		}
	}
	return false, nil
}

// proxy is a section of haproxy.cfg, or the defaults that it starts from.
// HAProxy's settings are lines, and inheriting a section is copying its
// lines.
type proxy struct {
	name    string
	at      policyfile.Position
	lines   map[string]configLine // by keyword, the last one wins
	servers []configLine
	guarded bool // a POST is kept from being repeated
}

// configLine is one line, split into words, with its position.
type configLine struct {
	words []string
	at    policyfile.Position
}

// haproxy reads backend and listen sections with the defaults above them.
// Retries go out after a fixed second, or at once to another server. There
// is no budget, and nothing bounds a request and its retries together.
//
// A section ends where the next begins, so that each is judged when the next
// one opens, and the last at the end of the file.
func (r *reader) haproxy() {
	for i := range r.parts {
		r.haproxyFile(&r.parts[i])
	}
}

func (r *reader) haproxyFile(part *Part) {
	defaults := map[string]*proxy{}
	last := &proxy{lines: map[string]configLine{}}
	var current *proxy
	line := 0
	for text := range strings.Lines(string(part.Text)) {
		line++
		words := haproxyWords(text)
		if len(words) == 0 {
			continue
		}
		// The column of the first word, since lines are indented.
		at := part.at(line, len(text)-len(strings.TrimLeft(text, " \t"))+1)
		switch words[0] {
		// A frontend passes requests on and retries nothing.
		case "global", "frontend", "userlist", "peers", "resolvers", "cache", "program", "http-errors", "ring", "mailers":
			r.backend(current)
			current = nil
		case "defaults", "backend", "listen":
			r.backend(current)
			current = begin(words, at, last, defaults)
		default:
			if current != nil {
				current.read(configLine{words, at})
			}
		}
	}
	r.backend(current)
}

// begin opens a section on top of the defaults that apply to it: those that
// it names with "from", or the last ones above it.
func begin(words []string, at policyfile.Position, last *proxy, defaults map[string]*proxy) *proxy {
	from := last
	if i := slices.Index(words, "from"); i >= 0 && i+1 < len(words) && defaults[words[i+1]] != nil {
		from = defaults[words[i+1]]
	}
	p := &proxy{at: at, lines: maps.Clone(from.lines), guarded: from.guarded}
	if words[0] != "defaults" {
		p.name = "unnamed"
		if len(words) > 1 {
			p.name = words[1]
		}
		return p
	}
	// A new defaults section starts from HAProxy's own defaults, not from
	// the one above.
	if i := slices.Index(words, "from"); i < 0 {
		p.lines, p.guarded = map[string]configLine{}, false
	}
	if len(words) > 1 && words[1] != "from" {
		defaults[words[1]] = p
	}
	*last = *p
	last.lines = p.lines // what the section says later holds for last too
	return last
}

// read keeps the lines that matter to retries and skips the rest.
func (p *proxy) read(l configLine) {
	switch w := l.words; {
	case w[0] == "retries" || w[0] == "retry-on":
		p.lines[w[0]] = l
	case w[0] == "timeout" && len(w) > 2:
		p.lines["timeout "+w[1]] = l
	case w[0] == "server" || w[0] == "default-server" || w[0] == "server-template":
		p.servers = append(p.servers, l)
	// A condition on POST, or one with "unless", keeps writes from being
	// repeated. Other conditions are taken as not covering them.
	case w[0] == "http-request" && len(w) > 1 && w[1] == "disable-l7-retry":
		p.guarded = len(w) == 2 || slices.Contains(w, "METH_POST") || slices.Contains(w, "POST") ||
			slices.Contains(w, "unless")
	}
}

// backend judges a section. Defaults have no name and are not judged alone;
// a section without servers retries nothing.
func (r *reader) backend(p *proxy) {
	if p == nil || p.name == "" || len(p.servers) == 0 {
		return
	}
	d := policyfile.Dependency{Name: p.name, At: p.at, Protocol: "http"}
	// verify none on a single server is enough for an attacker.
	for _, s := range p.servers {
		if i := slices.Index(s.words, "verify"); i >= 0 && i+1 < len(s.words) && s.words[i+1] == "none" {
			r.refuse(s.at, "R-9", &d, "tls.verify", "verify none accepts any certificate")
		}
	}
	count, at := haproxyRetries, p.at
	if l, ok := p.lines["retries"]; ok && len(l.words) > 1 {
		if n, err := strconv.Atoi(l.words[1]); err == nil {
			count, at = n, l.at
		}
	}
	retries(&d, count, at)
	if l, ok := p.lines["timeout server"]; ok {
		d.SetPlace("per_attempt", l.at)
		d.Policy.PerAttempt, _ = haproxyTime(l.words[2])
	}
	on, said := p.lines["retry-on"]
	// retry-on none leaves no retries, whatever retries says.
	if said && slices.Contains(on.words, "none") {
		retries(&d, 0, on.at)
	}
	// Without retries nothing below applies.
	if d.Policy.Disabled {
		r.add(d)
		return
	}
	if said {
		at = on.at
		r.retryOn(&d, on, p.guarded)
	}
	// These three hold for every HAProxy: no setting changes them.
	r.cannot(&d, "R-7", "budget", "HAProxy has no retry budget: every failed connection or request is tried again")
	r.cannot(&d, "R-1", "", "HAProxy retries after a fixed second, or at once at another server")
	r.cannot(&d, "R-3", "total.missing", "HAProxy has nothing that bounds a request and its retries together")
	r.cannot(&d, "R-5", "", "HAProxy does not read Retry-After: a server that asks for a pause is asked again at once")
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{time.Second}}
	r.add(d)
}

// retryOn judges what HAProxy retries beyond failed connections.
func (r *reader) retryOn(d *policyfile.Dependency, on configLine, guarded bool) {
	repeats := false
	for _, word := range on.words[1:] {
		if slices.Contains(never, word) {
			r.refuse(on.at, "R-4", d, "classify.http_"+word, "%s is tried again: the same request gets the same answer", word)
		}
		// These two happen before the request has been sent.
		repeats = repeats || word != "conn-failure" && word != "0rtt-rejected"
	}
	if repeats && !guarded {
		r.refuse(on.at, "R-6", d, "methods",
			"every method is repeated, POST without an Idempotency-Key too: add http-request disable-l7-retry if METH_POST")
	}
}

// haproxyTime reads a duration such as "5s", or milliseconds without a unit,
// which is HAProxy's default unit.
func haproxyTime(s string) (time.Duration, bool) {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(n) * time.Millisecond, true
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil
	}
	v, err := time.ParseDuration(s)
	return v, err == nil
}

// haproxyWords splits a line at spaces, respecting quotes, escapes and
// comments as HAProxy does: a quoted # begins no comment.
func haproxyWords(line string) (words []string) {
	var b strings.Builder
	var quote byte
	started := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
			continue
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			c = line[i]
		case quote != 0:
		case c == '"' || c == '\'':
			quote, started = c, true
			continue
		case c == '#':
			i = len(line)
			continue
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if started {
				words = append(words, b.String())
				b.Reset()
			}
			started = false
			continue
		}
		b.WriteByte(c)
		started = true
	}
	if started {
		words = append(words, b.String())
	}
	return words
}
