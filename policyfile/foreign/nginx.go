package foreign

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
)

// directive is one directive of nginx with its place, and its block when it
// has one. args[0] is its name.
type directive struct {
	args  []string
	at    policyfile.Position
	block []directive // not nil where there is one, though it be empty
}

// nginxReadTimeout is the default of proxy_read_timeout in
// ngx_http_proxy_module. It bounds the time between two reads and so comes
// closest to an attempt's timeout.
const nginxReadTimeout = 60 * time.Second

// nginx reads proxy_next_upstream and its kin. Tries include the first one.
// The next server is tried at once, there is no budget, and without a limit
// on tries every server of the upstream is tried.
//
// The defaults retry errors and timeouts: an nginx that says nothing of
// retries has them.
func (r *reader) nginx() {
	for i := range r.parts {
		part := &r.parts[i]
		p := &nginxParser{part: part, data: part.Text, line: 1, column: 1}
		all, fault := p.block(0)
		if fault != nil {
			continue // speaksNginx has reported it
		}
		upstreams := map[string]int{}
		r.upstreams(all, upstreams)
		r.nginxBlock(all, map[string]directive{}, upstreams)
	}
}

// speaksNginx reports whether a text has the grammar of nginx and a directive of
// its that is about passing requests on, or a block that holds such.
func speaksNginx(name string, data []byte) (bool, *policyfile.Fault) {
	p := &nginxParser{part: &Part{Name: name}, data: data, line: 1, column: 1}
	all, fault := p.block(0)
	marks := slices.ContainsFunc(all, nginxMark)
	if fault != nil && (marks || p.marked) {
		return false, fault
	}
	return fault == nil && marks, nil
}

// nginxBlocks and nginxWords are directives by which a file of nginx is known.
var (
	nginxBlocks = []string{"http", "server", "upstream", "location", "stream", "events"}
	nginxWords  = []string{"proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "proxy_set_header", "upstream_conf"}
)

func nginxMark(d directive) bool {
	name := d.args[0]
	return d.block != nil && slices.Contains(nginxBlocks, name) || slices.Contains(nginxWords, name) || strings.HasSuffix(name, "_next_upstream")
}

// upstreams counts the servers of each upstream, which bounds the tries.
func (r *reader) upstreams(block []directive, into map[string]int) {
	for _, d := range block {
		if d.args[0] == "upstream" && len(d.args) > 1 {
			for _, s := range d.block {
				if s.args[0] == "server" {
					into[d.args[1]]++
				}
			}
		}
		r.upstreams(d.block, into)
	}
}

// inherited are the directives that a block passes on to those within it. A
// directive in the inner block replaces the outer one.
var inherited = []string{
	"proxy_next_upstream", "proxy_next_upstream_tries", "proxy_next_upstream_timeout",
	"proxy_ssl_verify", "proxy_read_timeout",
}

// nginxBlock walks the blocks. Directives are collected first, since nginx
// does not care whether they stand above or below the proxy_pass.
func (r *reader) nginxBlock(block []directive, above map[string]directive, upstreams map[string]int) {
	// A copy for each block: siblings must not see each other's directives.
	set := maps.Clone(above)
	for _, d := range block {
		if slices.Contains(inherited, d.args[0]) && len(d.args) > 1 {
			set[d.args[0]] = d
		}
		if d.args[0] == "include" {
			// The included file may hold the directive that would change
			// the verdict.
			r.unjudged(d.at, "", "include %s is not followed", strings.Join(d.args[1:], " "))
		}
	}
	for _, d := range block {
		if d.args[0] == "proxy_pass" && len(d.args) > 1 {
			r.proxyPass(d, set, upstreams)
		}
		r.nginxBlock(d.block, set, upstreams)
	}
}

// proxyPass judges one place that requests are passed on from.
func (r *reader) proxyPass(pass directive, set map[string]directive, upstreams map[string]int) {
	scheme, rest, _ := strings.Cut(pass.args[1], "://")
	host, _, _ := strings.Cut(rest, "/")
	at := pass.at
	d := policyfile.Dependency{Name: host, At: at, Protocol: "http"}
	// A variable is resolved at run time, and nothing here is known of its
	// servers.
	if strings.Contains(host, "$") {
		r.unjudged(at, host, "proxy_pass to the variable %s: how many servers it has is not known here", host)
	}
	when, said := set["proxy_next_upstream"]
	if said {
		at = when.at
	} else {
		when.args = []string{"", "error", "timeout"}
	}
	from := at
	servers, known := upstreams[host]
	tries := max(servers, 1) // one name of one address has no next server
	if limit, ok := set["proxy_next_upstream_tries"]; ok {
		if n, err := strconv.Atoi(limit.args[1]); err == nil && n > 0 {
			from = limit.at
			// A limit cannot make nginx try more servers than there are.
			if !known {
				tries = n
			}
			tries = min(tries, n)
		}
	}
	if slices.Contains(when.args, "off") {
		tries = 1
	}
	retries(&d, tries-1, from)
	// nginx does not verify upstream certificates unless asked to.
	if verify, ok := set["proxy_ssl_verify"]; scheme == "https" && (!ok || verify.args[1] != "on") {
		place := d.At
		if ok {
			place = verify.at
		}
		r.refuse(place, "R-9", &d, "tls.verify", "proxy_ssl_verify is off, as it is by default: any certificate is accepted")
	}
	// Connecting has a time-out of its own, which is shorter as a rule.
	d.Policy.PerAttempt = nginxReadTimeout
	if read, ok := set["proxy_read_timeout"]; ok {
		d.SetPlace("per_attempt", read.at)
		if t, ok := nginxTime(read.args[1]); ok {
			d.Policy.PerAttempt = t
		}
	}
	if !d.Policy.Disabled {
		r.nextUpstream(&d, when, at, set)
	}
	r.add(d)
}

// nextUpstream judges when and for how long the next server is tried.
func (r *reader) nextUpstream(d *policyfile.Dependency, when directive, at policyfile.Position, set map[string]directive) {
	for _, word := range when.args[1:] {
		// Without this word nginx repeats no POST, LOCK or PATCH.
		if word == "non_idempotent" {
			r.refuse(at, "R-6", d, "methods", "non_idempotent repeats POST, with or without an Idempotency-Key")
		}
		if status, ok := strings.CutPrefix(word, "http_"); ok && slices.Contains(never, status) {
			r.refuse(at, "R-4", d, "classify."+word, "%s is tried again: the same request gets the same answer", word)
		}
	}
	r.cannot(d, "R-7", "budget", "nginx has no retry budget: every failed request is sent again")
	r.cannot(d, "R-1", "", "nginx asks the next server at once, without a wait")
	r.cannot(d, "R-5", "", "nginx does not read Retry-After: a server that asks for a pause is asked again at once")
	// A schedule is the only form that can say so: a base of zero means the default.
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{0}}
	limit, ok := set["proxy_next_upstream_timeout"]
	if ok {
		at = limit.at
		d.Policy.Total, _ = nginxTime(limit.args[1])
	}
	d.SetPlace("total", at)
	// Zero is nginx's default and means no limit.
	if d.Policy.Total == 0 {
		r.refuse(at, "R-3", d, "total.missing", "proxy_next_upstream_timeout is 0, as it is by default: nothing bounds the tries in time")
	}
}

// nginxUnits are the units of nginx's durations; a number without one is in
// seconds.
var nginxUnits = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "": time.Second,
}

// nginxTime reads a duration such as "30s", "500ms" or "1m30s", or seconds
// without a unit. Spaces may separate the parts.
func nginxTime(s string) (sum time.Duration, ok bool) {
	for s != "" {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		n, err := strconv.ParseInt(s[:end], 10, 32)
		if err != nil {
			return 0, false
		}
		s = s[end:]
		end = 0
		for end < len(s) && (s[end] < '0' || s[end] > '9') {
			end++
		}
		unit, known := nginxUnits[strings.TrimSpace(s[:end])]
		if !known {
			return 0, false
		}
		sum += time.Duration(n) * unit
		s = s[end:]
	}
	return sum, true
}

// nginxParser reads the grammar of nginx.conf: words that a semicolon ends,
// or a block in braces. It knows no directives, so that those of any module
// can be read.
type nginxParser struct {
	part         *Part
	data         []byte
	pos          int
	line, column int
	marked       bool // a directive was met by which a file of nginx is known
}

func (p *nginxParser) fault(at policyfile.Position, format string, args ...any) *policyfile.Fault {
	return &policyfile.Fault{Position: at, Message: fmt.Sprintf(format, args...)}
}

// maxDepth bounds blocks within blocks; nginx itself knows five or six.
const maxDepth = 50

// block reads directives up to the brace that closes it, or the end of the
// file at depth 0.
func (p *nginxParser) block(depth int) (all []directive, fault *policyfile.Fault) {
	all = []directive{}
	if depth > maxDepth {
		return all, p.fault(p.part.at(p.line, p.column), "more than %d blocks within each other", maxDepth)
	}
	var d directive
	for {
		word, line, column, end := p.word()
		// A quoted word may be empty and still is an argument.
		if word != "" || end == '"' {
			if len(d.args) == 0 {
				d.at = p.part.at(line, column)
			}
			d.args = append(d.args, word)
		}
		switch end {
		case ';':
			if len(d.args) > 0 {
				all = append(all, d)
			}
			d = directive{}
		case '{':
			inner, fault := p.block(depth + 1)
			if d.block = inner; len(d.args) > 0 {
				all = append(all, d)
				p.marked = p.marked || nginxMark(d)
			}
			if fault != nil {
				return all, fault
			}
			d = directive{}
		case '}', 0:
			switch {
			case len(d.args) > 0:
				return all, p.fault(d.at, "%q has no end", d.args[0])
			case end == 0 && depth > 0:
				return all, p.fault(p.part.at(p.line, p.column), "a block has no end")
			case end == '}' && depth == 0:
				return all, p.fault(p.part.at(p.line, p.column), "unexpected }")
			}
			return all, nil
		}
	}
}

// word returns the next word, its place, and what ended it: a space, a
// quote, one of ; { }, or 0 at the end of the file.
func (p *nginxParser) word() (word string, line, column int, end byte) {
	var b strings.Builder
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		if b.Len() == 0 {
			line, column = p.line, p.column
		}
		switch {
		case c == '#' && b.Len() == 0:
			for p.pos < len(p.data) && p.data[p.pos] != '\n' {
				p.next()
			}
			continue
		case (c == '"' || c == '\'') && b.Len() == 0:
			return p.quoted(c), line, column, '"'
		case c == '$' && p.pos+1 < len(p.data) && p.data[p.pos+1] == '{':
			b.WriteByte(c)
			p.next() // the brace belongs to the variable
			b.WriteByte('{')
			p.next()
			continue
		// A closing brace may belong to a variable, as in ${name}.
		case c == ';' || c == '{' || c == '}' && !strings.Contains(b.String(), "${"):
			p.next()
			return b.String(), line, column, c
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.next()
			if b.Len() > 0 {
				return b.String(), line, column, ' '
			}
			continue
		case c == '\\' && p.pos+1 < len(p.data):
			p.next()
			c = p.data[p.pos]
		}
		b.WriteByte(c)
		p.next()
	}
	return b.String(), line, column, 0
}

// quoted returns the text up to the closing quote. A missing one ends at the
// end of the file, where block reports it.
func (p *nginxParser) quoted(quote byte) string {
	var b strings.Builder
	p.next()
	for p.pos < len(p.data) && p.data[p.pos] != quote {
		if p.data[p.pos] == '\\' && p.pos+1 < len(p.data) {
			p.next()
		}
		b.WriteByte(p.data[p.pos])
		p.next()
	}
	if p.pos < len(p.data) {
		p.next()
	}
	return b.String()
}

// next moves on by one byte and keeps count of lines and columns.
func (p *nginxParser) next() {
	if p.data[p.pos] == '\n' {
		p.line, p.column = p.line+1, 0
	}
	p.column++
	p.pos++
}
