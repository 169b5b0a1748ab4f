package foreign

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of Caddy's reverse_proxy, by its page and its source: no retries, 250 ms
// between those that a duration bounds, which no interval of 0 takes away, and 3 s for a
// connection. Retries that a number alone bounds follow at once.
const (
	caddyInterval = 250 * time.Millisecond
	caddyDial     = 3 * time.Second
)

// setting is a word of a configuration with its place.
type setting struct {
	text string
	at   policyfile.Position
}

// span reads a duration, which is zero where there is none. A number alone is in
// nanoseconds, as Caddy's JSON has it. ok is false for what cannot be read, as a
// placeholder for the environment.
func (s setting) span() (d time.Duration, ok bool) {
	if s.text == "" {
		return 0, true
	}
	if n, err := strconv.ParseInt(s.text, 10, 64); err == nil {
		return time.Duration(max(n, 0)), true
	}
	if days, ok := strings.CutSuffix(s.text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		return time.Duration(min(max(n, 0), 1000) * 24 * float64(time.Hour)), err == nil
	}
	d, err := time.ParseDuration(s.text)
	return max(d, 0), err == nil
}

// caddyProxy is one reverse_proxy, from a Caddyfile or from JSON.
type caddyProxy struct {
	at                          policyfile.Position
	route                       string
	upstreams                   []string
	retries, duration, interval setting
	dial, header, insecure      setting
	matches                     []caddyMatch    // what may be sent again when it was sent
	imported                    map[string]bool // the snippets that were read
}

// caddyMatch is a set of matchers, of which all must match.
type caddyMatch struct {
	methods []string
	texts   []string // expressions
	at      policyfile.Position
}

// claimsCaddy knows a handler of Caddy's JSON.
func claimsCaddy(n *tree.Node) bool { return n.Get("handler").Text() == "reverse_proxy" }

// caddy reads every reverse_proxy, also those that handle the response of another. One
// without a setting for retries makes none.
func (r *reader) caddy() {
	for i := range r.parts {
		part := &r.parts[i]
		if part.Root != nil {
			part.Root.Walk(func(n *tree.Node) bool {
				if claimsCaddy(n) {
					r.caddyUnit(caddyJSON(n))
				}
				return true
			})
			continue
		}
		p := &caddyParser{part: part, cursor: begin(caddyText(part.Text))}
		all, _ := p.block(0)
		snippets := map[string][]directive{}
		for _, d := range all {
			if d.block != nil && strings.HasPrefix(d.args[0], "(") {
				snippets[strings.Trim(d.args[0], "()")] = d.block
			}
		}
		r.caddyBlock(all, "", snippets, 0)
	}
}

// caddyProxies are the directives that send a request on. The other two are short for a
// reverse_proxy, and take all of its settings.
var caddyProxies = []string{"reverse_proxy", "php_fastcgi", "forward_auth"}

// caddyBlock looks for reverse_proxy in the blocks of sites and of handlers.
func (r *reader) caddyBlock(block []directive, route string, snippets map[string][]directive, depth int) {
	for _, d := range block {
		inner := route
		switch {
		case slices.Contains(caddyProxies, d.args[0]):
			r.caddyUnit(caddyFile(d, route, snippets))
		case d.args[0] == "import" && len(d.args) > 1 && snippets[d.args[1]] == nil:
			r.unjudged(d.at, "", "import %s is not followed: what it holds is judged where that file is named too", d.args[1])
		default:
			inner = strings.TrimSpace(route + " " + strings.Join(d.args, " "))
		}
		if depth < maxDepth {
			r.caddyBlock(d.block, inner, snippets, depth+1)
		}
	}
}

// caddyUnit judges one reverse_proxy.
func (r *reader) caddyUnit(c caddyProxy) {
	d := policyfile.Dependency{Name: "unnamed", Route: c.route, At: c.at, Protocol: "http"}
	if len(c.upstreams) > 0 {
		d.Name = anonymous(c.upstreams[0])
	}
	if c.insecure.text == "true" {
		r.refuse(c.insecure.at, "R-9", &d, "tls.verify", "the verification of certificates is switched off")
	}
	count, at := r.number(&d, &tree.Node{Value: c.retries.text, At: c.retries.at}, 0, c.retries.at)
	total, interval := r.caddySpan(&d, c.duration), r.caddySpan(&d, c.interval)
	if count == 0 && total == 0 && !d.AtLeast {
		r.quiet(c.at)
		return
	}
	d.At = cmp.Or(c.retries.at, c.duration.at, c.at)
	if interval == 0 && c.duration.text != "" {
		interval = caddyInterval
	}
	d.Policy.PerAttempt = max(cmp.Or(r.caddySpan(&d, c.dial), caddyDial), r.caddySpan(&d, c.header))
	// While a connection is refused, each try takes no longer than its wait.
	var judged []string
	if total > 0 {
		tries := int(min(total/interval, math.MaxInt16))
		if count == 0 || tries < count {
			count, at = max(tries, 1), c.duration.at
			d.Lacks = append(d.Lacks, "per_attempt") // the figure is that of tries that fail at once
			judged = r.caddyTries(&d, count, at)
		}
	}
	retries(&d, max(count, 1), at)
	d.Policy.Total = total
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{0, interval}}
	r.caddyLongest(&d, c, count, interval)
	responded := r.caddyMatches(&d, c.matches)
	r.cannot(&d, "R-7", "budget", "Caddy has no retry budget: what fails is tried again whatever the load")
	r.cannot(&d, "R-1", "", "Caddy waits for a fixed time between tries")
	if responded {
		r.cannot(&d, "R-5", "", "Caddy does not read Retry-After: a server that asks for a pause is asked again before it is over")
	}
	r.add(d, judged...)
}

// caddyLongest says how long a call may take: a duration bounds when a try may begin, and
// the last one goes on.
func (r *reader) caddyLongest(d *policyfile.Dependency, c caddyProxy, count int, interval time.Duration) {
	switch total := d.Policy.Total; {
	case total > 0:
		d.SetPlace("total", c.duration.at)
		try, wait := float64(d.Policy.PerAttempt), float64(interval)
		d.Longest = saturated(min(float64(count)*(try+wait)+try, float64(total)+wait+try), 1)
	case c.duration.text == "":
		r.refuse(d.At, "R-3", d, "total.missing", "lb_try_duration is missing: nothing bounds the tries in time")
	default:
		d.Lacks = append(d.Lacks, "total.missing") // it cannot be read
	}
	if c.header.text == "" { // a server that does not respond is waited for
		d.Longest = math.MaxInt64
		unbounded(d)
	}
}

// caddyTries judges a count that follows from a duration, and returns the field
// that it has judged.
func (r *reader) caddyTries(d *policyfile.Dependency, count int, at policyfile.Position) []string {
	_, low, high := forbear.Sync.Range()
	if count > high {
		r.refuse(at, "R-2", d, "max_retries", "lb_try_duration lets %d retries begin, when they fail at once, and the standard has %d-%d: bound them by lb_retries", count, low, high)
		refused := r.result(d.At.File).Refused
		refused[len(refused)-1].Value = fmt.Sprint(count)
	}
	return []string{"max_retries"}
}

// caddySpan reads a duration, or says that it cannot be read.
func (r *reader) caddySpan(d *policyfile.Dependency, s setting) time.Duration {
	t, ok := s.span()
	if !ok {
		r.open(s.at, d, "%s: %q is no duration: how long it is tried is not known", d.Name, s.text)
	}
	return t
}

// caddyJSON reads a handler of Caddy's JSON.
func caddyJSON(n *tree.Node) caddyProxy {
	c := caddyProxy{at: n.At}
	of := func(n *tree.Node) setting {
		if n == nil {
			return setting{}
		}
		return setting{n.Text(), n.At}
	}
	for _, upstream := range n.Get("upstreams").List() {
		c.upstreams = append(c.upstreams, upstream.Get("dial").Text())
	}
	if name := n.Get("dynamic_upstreams").Get("name"); name != nil {
		c.upstreams = append(c.upstreams, name.Text())
	}
	balancing, transport := n.Get("load_balancing"), n.Get("transport")
	c.retries, c.duration, c.interval = of(balancing.Get("retries")), of(balancing.Get("try_duration")), of(balancing.Get("try_interval"))
	c.dial, c.header, c.insecure = of(transport.Get("dial_timeout")), of(transport.Get("response_header_timeout")), of(transport.Get("tls").Get("insecure_skip_verify"))
	for _, match := range balancing.Get("retry_match").List() {
		m := caddyMatch{at: match.At}
		for _, method := range match.Get("method").List() {
			m.methods = append(m.methods, method.Text())
		}
		if expression := match.Get("expression"); expression != nil {
			m.texts = []string{expression.Text() + expression.Get("expr").Text()}
		}
		c.matches = append(c.matches, m)
	}
	return c
}

// terminalStatus finds the statuses that R-4 forbids to retry in an expression.
var terminalStatus = regexp.MustCompile(`\b(` + strings.Join(never, "|") + `)\b`)

// caddyResponse finds the placeholders of a response in an expression.
var caddyResponse = regexp.MustCompile(`\brp\.|reverse_proxy\.|status_code`)

// caddyMatches judges what is sent again after it was sent: GET alone, unless
// lb_retry_match says more. It reports whether responses are tried again.
func (r *reader) caddyMatches(d *policyfile.Dependency, matches []caddyMatch) (responded bool) {
	for _, m := range matches {
		text := strings.Join(m.texts, " ")
		responded = responded || caddyResponse.MatchString(text)
		switch {
		case len(m.methods) > 0 && !slices.ContainsFunc(m.methods, func(s string) bool { return !idempotent(strings.ToUpper(s)) }):
		case len(m.methods) == 0 && strings.Contains(text, "method"):
			r.unjudged(m.at, d.Name, "which methods an expression lets %s be retried for is not judged", d.Name)
		default:
			r.refuse(m.at, "R-6", d, "methods", "lb_retry_match repeats POST, with or without an Idempotency-Key: have it match on method, and on idempotent ones alone")
		}
		if strings.Contains(text, "status_code") {
			for _, status := range terminalStatus.FindAllString(text, -1) {
				r.refuse(m.at, "R-4", d, "classify.http_"+status, "%s is tried again: the same request gets the same response", status)
			}
		}
	}
	return responded
}
