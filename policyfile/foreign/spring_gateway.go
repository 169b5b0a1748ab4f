package foreign

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of the gateway's filter Retry and of its backoff.
const (
	gatewayRetries = 3
	gatewayFirst   = 5 * time.Millisecond
	gatewayFactor  = 2
)

// gatewayPaths are where the versions of Spring Cloud Gateway have their routes. Those
// on the servlet stack have a simpler Retry.
var gatewayPaths = [][]string{
	{"spring", "cloud", "gateway"},
	{"spring", "cloud", "gateway", "server", "webflux"},
	{"spring", "cloud", "gateway", "mvc"},
	{"spring", "cloud", "gateway", "server", "webmvc"},
}

// gatewayRetry is a filter Retry, in one of its two spellings.
type gatewayRetry struct {
	at   policyfile.Position
	args *tree.Node
	// limited says that a CircuitBreaker stands before it, and around it: its time
	// limiter bounds all attempts together.
	limited bool
}

// springGateway reads the routes of Spring Cloud Gateway that retry. The default filters
// are around those of each route.
func (r *reader) springGateway(doc springDoc) {
	for _, path := range gatewayPaths {
		own := doc.scope[0].Fold(path...)
		if !own.Map() {
			continue
		}
		all := doc.scope.at(path...)
		routes, shared := all.get("routes").List(), gatewayFilters(all.get("default-filters"))
		if own.Fold("routes") == nil && own.Fold("default-filters") == nil {
			continue // of a profile that changes something else
		}
		for _, route := range routes {
			r.gatewayRoute(doc, path, route, slices.Concat(shared, gatewayFilters(route.Fold("filters"))), all)
		}
		if len(routes) == 0 {
			r.gatewayRoute(doc, path, nil, shared, all)
		}
	}
}

// gatewayFilters returns the filters Retry of a list.
func gatewayFilters(list *tree.Node) (found []gatewayRetry) {
	limited := false
	for _, n := range list.List() {
		if n.Map() && n.Fold("name").Text() == "Retry" {
			found = append(found, gatewayRetry{n.At, n.Fold("args"), limited})
		}
		name, values, ok := strings.Cut(n.Text(), "=")
		limited = limited || n.Fold("name").Text() == "CircuitBreaker" || ok && strings.TrimSpace(name) == "CircuitBreaker"
		if n.Map() || !ok || strings.TrimSpace(name) != "Retry" {
			continue
		}
		// The shortcut has the arguments in this order.
		args := &tree.Node{Kind: tree.Map, At: n.At}
		backoff := &tree.Node{Kind: tree.Map, At: n.At}
		for i, value := range strings.Split(values, ",") {
			keys := []string{"retries", "statuses", "methods", "firstBackoff", "maxBackoff", "factor", "basedOnPreviousValue"}
			if i == len(keys) {
				break
			}
			into := args
			if i > 2 {
				into = backoff
			}
			into.Pairs = append(into.Pairs, tree.Pair{Key: keys[i], At: n.At, Value: &tree.Node{Value: strings.TrimSpace(value), At: n.At}})
		}
		if len(backoff.Pairs) > 0 {
			args.Pairs = append(args.Pairs, tree.Pair{Key: "backoff", At: n.At, Value: backoff})
		}
		found = append(found, gatewayRetry{n.At, args, limited})
	}
	return found
}

// gatewayRoute reads one route with its filters; nil stands for the routes that the
// code or a registry brings.
func (r *reader) gatewayRoute(doc springDoc, path []string, route *tree.Node, filters []gatewayRetry, all scope) {
	if len(filters) == 0 {
		if route != nil {
			r.quiet(route.At)
		}
		return
	}
	id, last := cmp.Or(route.Fold("id").Text(), "all routes"), filters[len(filters)-1]
	uri, _ := resolved(route.Fold("uri"))
	d := policyfile.Dependency{Name: cmp.Or(springTarget(uri), id), Route: strings.TrimSpace(id + " " + doc.profile), At: last.at, Protocol: "http"}
	servlet := slices.Contains(path, "mvc") || slices.Contains(path, "webmvc")
	sends, place := 1, last.at
	for _, f := range filters {
		n := f.args.Fold("retries")
		v, ok := springNumber(n, gatewayRetries)
		if !ok {
			r.open(f.at, &d, "%s: the environment decides how often route %s retries", d.Name, id)
		}
		// The filters of a request share one count. On the servlet stack each has its own.
		own := int(min(max(v, 0), 1<<10)) + 1
		if own >= sends || servlet {
			place = placed(n, f.at)
		}
		if servlet {
			sends = min(sends*own, 1<<20)
		} else {
			sends = max(sends, own)
		}
	}
	if retries(&d, sends-1, place); d.Policy.Disabled && !d.AtLeast {
		r.quiet(d.At)
		return
	}
	if len(filters) > 1 {
		what := ", which share one count: the larger one applies"
		if servlet {
			what = ": their attempts multiply"
		}
		r.unjudged(last.at, d.Name, "route %s has %d nested Retry filters%s", id, len(filters), what)
	}
	r.gatewayWaits(&d, last, servlet)
	for _, f := range filters {
		r.gatewayConditions(&d, f)
	}
	r.springTimes(&d, last, servlet, route, all)
	r.cannot(&d, "R-5", "", "Spring Cloud Gateway ignores Retry-After: a server that asks for a pause is called again too early")
	r.cannot(&d, "R-7", "budget", "Spring Cloud Gateway has no retry budget")
	r.add(d)
}

// gatewayWaits reads the backoff, which is off by default.
func (r *reader) gatewayWaits(d *policyfile.Dependency, f gatewayRetry, servlet bool) {
	backoff := f.args.Fold("backoff")
	if backoff == nil || servlet {
		grow(d, 0, 1, 0)
		if servlet {
			r.cannot(d, "R-1", "", "the gateway on the servlet stack retries at once: its Retry has no backoff")
			return
		}
		r.refuse(f.at, "R-1", d, "backoff.jitter", "retries at once: set backoff and jitter")
		return
	}
	d.SetPlace("backoff.base", backoff.At)
	factor := r.springFactor(d, backoff.Fold("factor"), gatewayFactor)
	first, most := r.springTime(d, "backoff.base", backoff.Fold("first-backoff"), gatewayFirst), r.springTime(d, "backoff.cap", backoff.Fold("max-backoff"), 0)
	grow(d, first, factor, most)
	jitter := f.args.Fold("jitter")
	share := r.springFactor(d, jitter.Fold("random-factor"), 0.5)
	switch {
	case factor <= 1:
		r.refuse(backoff.At, "R-1", d, "backoff.base", "the waits do not grow: factor is %v", factor)
	case jitter == nil:
		r.refuse(backoff.At, "R-1", d, "backoff.jitter", "no jitter: set jitter with a randomFactor of 1")
	case share < 1:
		r.refuse(jitter.At, "R-1", d, "backoff.jitter", "the waits vary by only %v around one value: full jitter has a randomFactor of 1", share)
	}
}

// springTimes reads the bounds: of one attempt by the HTTP client, and of all together
// by the filter, in versions that have it.
func (r *reader) springTimes(d *policyfile.Dependency, f gatewayRetry, servlet bool, route *tree.Node, all scope) {
	if v := f.args.Fold("timeout"); v != nil && !servlet {
		d.Policy.Total = r.springTime(d, "total", v, 0)
	}
	switch {
	case d.Policy.Total > 0, slices.Contains(d.Lacks, "total.missing"):
	case servlet:
		r.cannot(d, "R-3", "total.missing", "on the servlet stack Retry cannot bound all attempts together")
	case f.limited:
		d.Lacks = append(d.Lacks, "total.missing")
		r.unjudged(f.at, d.Name, "%s: the time limiter of the CircuitBreaker around Retry bounds all attempts together, by its own settings", d.Name)
	default:
		r.refuse(f.at, "R-3", d, "total.missing", "nothing bounds all attempts together: set Retry's timeout")
	}
	limit := cmp.Or(route.Fold("metadata", "response-timeout"), all.get("httpclient", "response-timeout"))
	if d.Policy.PerAttempt = r.springTime(d, "per_attempt", limit, 0); d.Policy.PerAttempt == 0 {
		unbounded(d)
	}
}

// seriesNames are those of Spring's groups of statuses, and springStatuses those of the
// statuses that a retry may be for.
var (
	seriesNames    = []string{"INFORMATIONAL", "SUCCESSFUL", "REDIRECTION", "CLIENT_ERROR", "SERVER_ERROR"}
	springStatuses = []string{"REQUEST_TIMEOUT", "TOO_MANY_REQUESTS", "INTERNAL_SERVER_ERROR", "BAD_GATEWAY", "SERVICE_UNAVAILABLE", "GATEWAY_TIMEOUT"}
)

// gatewayConditions judges the statuses and methods that are retried: 5xx and GET by
// default.
func (r *reader) gatewayConditions(d *policyfile.Dependency, f gatewayRetry) {
	series := springList(f.args.Fold("series"))
	for _, n := range springList(f.args.Fold("statuses")) {
		text, _ := resolved(n)
		switch code := statusNamed(text); {
		case code > 0:
			text = strconv.Itoa(code)
		case slices.Contains(seriesNames, strings.ToUpper(text)):
			series = append(series, n) // in the shortcut of the servlet stack
		case span(text) == nil:
			r.misspelt(n.At, d, text, "is not a status, and the gateway does not start", meant(text, springStatuses))
		}
		r.terminals(n.At, d, text, "")
	}
	if len(series) == 0 && f.args.Fold("series") == nil && r.told.first(d.At.File, "series") {
		series = []*tree.Node{{Value: "SERVER_ERROR", At: f.at}} // the default
	}
	for _, n := range series {
		switch text, _ := resolved(n); strings.ToUpper(text) {
		case "CLIENT_ERROR", "4":
			r.refuse(n.At, "R-4", d, "classify.http_4xx", "all of 4xx is retried: the same request gets the same response")
		case "SERVER_ERROR", "5":
			r.terminals(n.At, d, "5xx", "leave series empty, and list statuses")
		default:
			if _, err := strconv.Atoi(text); err != nil && !slices.Contains(seriesNames, strings.ToUpper(text)) {
				r.misspelt(n.At, d, text, "is not a series, and the gateway does not start", nearest.Hint(text, seriesNames, ""))
			}
		}
	}
	for _, n := range springList(f.args.Fold("methods")) {
		if text, _ := resolved(n); strings.EqualFold(text, "POST") || strings.EqualFold(text, "PATCH") {
			r.refuse(n.At, "R-6", d, "methods", "%s is retried, even without an Idempotency-Key", strings.ToUpper(text))
		}
	}
}
