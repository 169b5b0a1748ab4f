package foreign

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/terminal"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of resilience4j's RetryConfig and IntervalFunction.
const (
	r4jAttempts   = 3
	r4jWait       = 500 * time.Millisecond
	r4jMultiplier = 1.5
	r4jFactor     = 0.5
	r4jTimeout    = time.Second // of a TimeLimiter
)

// claimsResilience4j knows the settings of resilience4j's starter for Spring Boot.
func claimsResilience4j(n *tree.Node) bool {
	return slices.ContainsFunc(n.Pairs, func(p tree.Pair) bool {
		return p.Key == "resilience4j" && p.Value.Map() || strings.HasPrefix(p.Key, "resilience4j.")
	})
}

// ownResilience4j returns its sections.
func ownResilience4j(n *tree.Node) (own []*tree.Node) {
	for _, p := range n.Pairs {
		if p.Key == "resilience4j" || strings.HasPrefix(p.Key, "resilience4j.") {
			own = append(own, p.Value)
		}
	}
	return own
}

// resilience4j reads the Retry instances, with the TimeLimiter of the same name, which
// bounds one attempt. An instance takes what it leaves out from its base config, or from
// the config called default, and never from both.
func (r *reader) resilience4j() {
	for _, doc := range r.springDocs() {
		all := doc.scope.at("resilience4j", "retry")
		own := doc.scope[:1].at("resilience4j", "retry")
		names, seen := []string{}, map[string]*tree.Node{}
		from := own
		// A profile with other configs changes all instances that rest on them.
		if own.get("configs") != nil {
			from = all
		}
		for _, kind := range []string{"instances", "backends"} {
			for _, section := range from.at(kind) {
				for _, p := range section.Pairs {
					if seen[p.Key] == nil && p.Value.Map() {
						names, seen[p.Key] = append(names, p.Key), p.Value
					}
				}
			}
		}
		for _, name := range names {
			layers := r4jLayers(all, r4jOwn(all, name))
			limits := doc.scope.at("resilience4j", "timelimiter")
			r.r4jInstance(name, doc.profile, seen[name], layers, r4jLayers(limits, r4jOwn(limits, name)), len(r4jOwn(limits, name)) > 0)
		}
		// Configs alone are for instances that the code names.
		if section := own.get("configs"); len(names) == 0 && section != nil {
			for _, p := range section.Pairs {
				if p.Value.Map() {
					r.r4jInstance("config "+p.Key, doc.profile, p.Value, r4jLayers(all, all.at("configs", p.Key)), nil, false)
				}
			}
		}
	}
}

// r4jOwn returns what is said of an instance itself.
func r4jOwn(all scope, name string) scope {
	return append(all.at("instances", name), all.at("backends", name)...)
}

// r4jLayers adds to an instance's own settings those that it takes over.
func r4jLayers(all, own scope) (layers scope) {
	const most = 10 // configs that rest on each other
	for range most {
		layers = append(layers, own...)
		base := own.get("base-config").Text()
		if base == "" {
			break
		}
		own = all.at("configs", base)
	}
	if layers.get("base-config") == nil {
		layers = append(layers, all.at("configs", "default")...)
	}
	return layers
}

// r4jInstance reads one instance.
func (r *reader) r4jInstance(name, profile string, at *tree.Node, s, limit scope, limited bool) {
	d := policyfile.Dependency{Name: name, Route: profile, At: at.At}
	count := cmp.Or(s.get("max-attempts"), s.get("max-retry-attempts")) // the latter before version 1.0; it counts the first, too
	if !r.springRetries(&d, count, r4jAttempts, 1) {
		r.quiet(d.At)
		return
	}
	r.r4jWaits(&d, s)
	r.r4jExceptions(&d, s)
	r.r4jUnread(&d, s)
	if limited {
		d.Policy.PerAttempt = r.springTime(&d, "per_attempt", limit.get("timeout-duration"), r4jTimeout)
	} else {
		unbounded(&d)
	}
	r.cannot(&d, "R-3", "total.missing", "resilience4j's Retry cannot bound a call and its retries together: a TimeLimiter bounds one attempt")
	r.cannot(&d, "R-6", "", "resilience4j repeats whatever it decorates, even writes without an idempotency key: keep Retry off methods that write")
	r.cannot(&d, "R-7", "budget", "resilience4j has no retry budget")
	r.add(d)
}

// r4jWaits reads the backoff. Waits are fixed by default; randomizedWaitFactor must be
// below 1, so that full jitter cannot be set.
func (r *reader) r4jWaits(d *policyfile.Dependency, s scope) {
	at := placed(s.get("wait-duration"), d.At)
	if own := s.get("interval-bi-function"); own != nil {
		r.unjudged(own.At, d.Name, "%s: a custom class decides its waits", d.Name)
		grow(d, 0, 1, 0)
		return
	}
	wait := r.springTime(d, "backoff.base", s.get("wait-duration"), r4jWait)
	most := r.springTime(d, "backoff.cap", s.get("exponential-max-wait-duration"), 0)
	grows, random := springTrue(s.get("enable-exponential-backoff"), false), springTrue(s.get("enable-randomized-wait"), false)
	factor, share := 1.0, 0.0
	if grows {
		factor = r.springFactor(d, s.get("exponential-backoff-multiplier"), r4jMultiplier)
	}
	if random {
		share = r.springFactor(d, s.get("randomized-wait-factor"), r4jFactor)
	}
	grow(d, wait, factor, most)
	for i, step := range d.Policy.Backoff.Schedule {
		step += time.Duration(min(max(share, 0), 1) * float64(step))
		if most > 0 {
			step = min(step, most)
		}
		d.Policy.Backoff.Schedule[i] = step
	}
	switch {
	case !grows && !random:
		r.refuse(at, "R-1", d, "backoff.jitter", "waits %v before every retry: set enableExponentialBackoff and enableRandomizedWait", each(wait))
	case !grows:
		r.refuse(at, "R-1", d, "backoff.base", "the waits do not grow: set enableExponentialBackoff")
	case !random:
		r.refuse(at, "R-1", d, "backoff.jitter", "no jitter: set enableRandomizedWait")
	default:
		r.cannot(d, "R-1", "", "resilience4j's waits vary around the exponential value by randomizedWaitFactor, which is below 1: that is not full jitter")
	}
	r.cannot(d, "R-5", "", "resilience4j ignores Retry-After, unless an intervalBiFunction reads it: a server that asks for a pause is called again too early")
}

// terminalErrors are exceptions of Java's clients for responses that R-4 forbids to
// retry, by the end of their names. The first stands for all of 4xx. Nested classes are named
// after their statuses.
var terminalErrors = []string{
	"HttpClientErrorException", "FeignClientException", "rs.ClientErrorException", "rs.BadRequestException", "rs.NotAuthorizedException", "rs.ForbiddenException",
	"rs.NotFoundException",
}

// serverErrors are those that stand for all of 5xx.
var serverErrors = []string{"HttpServerErrorException", "FeignServerException", "rs.ServerErrorException"}

// r4jExceptions judges what is retried. Without a list that is every exception.
func (r *reader) r4jExceptions(d *policyfile.Dependency, s scope) {
	list, ignored := springList(s.get("retry-exceptions")), springList(s.get("ignore-exceptions"))
	called := func(n *tree.Node) string {
		text, _ := resolved(n)
		// Nested classes are written with either.
		for _, outer := range []string{"HttpClientErrorException", "WebClientResponseException", "FeignException"} {
			text = strings.Replace(text, outer+".", outer+"$", 1)
		}
		return text
	}
	every := len(list) == 0 && s.get("retry-exception-predicate") == nil
	for _, n := range list {
		name := called(n)
		covered := slices.ContainsFunc(ignored, func(i *tree.Node) bool {
			return name == called(i) || strings.HasPrefix(name, called(i)+"$")
		})
		short, verdict := short(name), terminal.Retryable
		if _, nested, ok := strings.Cut(name, "$"); ok && statusNamed(nested) > 0 {
			verdict = terminal.Status(statusNamed(nested))
		}
		every = every || slices.Contains(broadErrors, short)
		switch {
		case covered:
		case verdict == terminal.Unlisted:
			r.unlisted(n.At, d, short)
		case slices.ContainsFunc(serverErrors, func(end string) bool { return strings.HasSuffix(name, end) }):
			r.retried(n.At, d, short, span("5xx"), "list the exceptions of single statuses")
		case verdict == terminal.Forbidden, slices.ContainsFunc(terminalErrors, func(end string) bool { return strings.HasSuffix(name, end) }):
			r.refuse(n.At, "R-4", d, "classify."+short, "%s is retried: the same request gets the same response", short)
		case strings.HasPrefix(short, "SSL") || strings.HasPrefix(short, "Certificate"):
			r.refuse(n.At, "R-9", d, "classify."+short, "%s is retried: certificate errors do not go away", short)
		}
	}
	tls := slices.IndexFunc(list, func(n *tree.Node) bool { return slices.Contains(ioErrors, short(called(n))) })
	if tls >= 0 && !every && !r.noted(list[tls].At) && !slices.ContainsFunc(ignored, func(n *tree.Node) bool {
		return strings.HasPrefix(short(called(n)), "SSL") || slices.Contains(ioErrors, short(called(n)))
	}) {
		r.unjudged(list[tls].At, d.Name, "%s is retried, which includes certificate errors (R-9): add SSLException to ignoreExceptions", short(called(list[tls])))
	}
	if every && len(ignored) == 0 {
		what := "retries every exception"
		if broad := slices.IndexFunc(list, func(n *tree.Node) bool { return slices.Contains(broadErrors, short(called(n))) }); broad >= 0 {
			what = "retries every " + short(called(list[broad]))
		}
		r.unjudged(d.At, d.Name, "%s %s: this includes certificate errors (R-9), and 4xx where the client throws them (R-4)", d.Name, what)
	}
}

// r4jKeys are the settings of a Retry in Spring Boot's configuration, and r4jWords those
// words of a key by which another one is about when and what it retries.
var (
	r4jKeys = []string{
		"base-config", "max-attempts", "max-retry-attempts", "wait-duration", "interval-bi-function", "enable-exponential-backoff", "exponential-backoff-multiplier",
		"exponential-max-wait-duration", "enable-randomized-wait", "randomized-wait-factor", "retry-exceptions", "ignore-exceptions", "retry-exception-predicate",
		"result-predicate", "consume-result-before-retry-attempt", "fail-after-max-attempts",
	}
	r4jWords = []string{"wait", "retr", "attempt", "backoff", "interval", "exception", "jitter", "random", "delay", "duration"}
)

// r4jUnread notes settings that the instance does not have: Spring drops them without a
// word, and then something else holds than what is written.
func (r *reader) r4jUnread(d *policyfile.Dependency, s scope) {
	for _, section := range s {
		for _, p := range section.Pairs {
			about := slices.ContainsFunc(r4jWords, func(word string) bool { return strings.Contains(strings.ToLower(p.Key), word) })
			if about && !r.noted(p.At) && !slices.ContainsFunc(r4jKeys, func(key string) bool { return tree.Same(key, p.Key) }) {
				r.unjudged(p.At, d.Name, "%s is not a setting of resilience4j's Retry, and has no effect", p.Key)
			}
		}
	}
}

// short is the name of a class without its package.
func short(name string) string { return name[strings.LastIndexAny(name, ".$")+1:] }

// ioErrors are exceptions of which those about certificates are a kind, or a cause.
var ioErrors = []string{"IOException", "UncheckedIOException", "ResourceAccessException"}

// broadErrors are exceptions that stand for so many others that they exclude nothing.
var broadErrors = []string{
	"Throwable", "Exception", "RuntimeException", "RestClientException", "RestClientResponseException", "HttpStatusCodeException",
	"WebClientResponseException", "WebClientException", "FeignException", "WebApplicationException",
}
