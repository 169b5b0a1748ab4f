package foreign

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// springGroups are keys below "spring" by which its configuration is known.
var springGroups = []string{
	"ai", "application", "autoconfigure", "cloud", "config", "data", "datasource", "jpa", "kafka", "main", "profiles", "rabbitmq", "retry",
	"security", "web", "webflux",
}

// claimsSpring knows the configuration of Spring Boot by its groups of settings.
func claimsSpring(n *tree.Node) bool {
	for _, p := range n.Pairs {
		if group, ok := strings.CutPrefix(p.Key, "spring."); ok {
			group, _, _ = strings.Cut(group, ".")
			if slices.Contains(springGroups, group) {
				return true
			}
		}
		// Where older versions have the clients of OpenFeign.
		if strings.HasPrefix(p.Key, "feign.client.") || p.Key == "feign" && p.Value.Fold("client", "config").Map() {
			return true
		}
		if p.Key == "spring" && slices.ContainsFunc(p.Value.Pairs, func(q tree.Pair) bool {
			group, _, _ := strings.Cut(q.Key, ".")
			return slices.Contains(springGroups, group)
		}) {
			return true
		}
	}
	return false
}

// spring reads what Spring Boot itself retries by its configuration: routes of the
// gateway, clients, listeners of queues. What code says, as @Retryable, is not here.
func (r *reader) spring() {
	for _, doc := range r.springDocs() {
		r.springGateway(doc)
		r.springFeign(doc)
		for _, kind := range []string{"simple", "direct", "stream"} {
			r.springRabbit(doc, kind)
		}
		r.springKafka(doc)
		r.springStream(doc)
		if t, ok := doc.boot("rabbitmq template", forbear.Sync, "spring", "rabbitmq", "template", "retry"); ok && springTrue(t.s.get("enabled"), false) {
			r.springTemplate(t, false)
		}
		r.springUnread(doc)
	}
}

// The defaults of feign.Retryer.Default, and of feign.Request.Options.
const (
	feignAttempts = 5
	feignPeriod   = 100 * time.Millisecond
	feignMost     = time.Second
	feignFactor   = 1.5
	feignRead     = 60 * time.Second
)

// springFeign reads the clients of OpenFeign. Without a retryer they do not retry.
func (r *reader) springFeign(doc springDoc) {
	for _, keys := range [][]string{{"spring", "cloud", "openfeign", "client", "config"}, {"feign", "client", "config"}} {
		section := doc.scope[0].Fold(keys...)
		if section == nil {
			continue
		}
		for _, p := range section.Pairs {
			s := doc.scope.at(append(slices.Clone(keys), p.Key)...)
			s = append(s, doc.scope.at(append(slices.Clone(keys), "default")...)...)
			class := s.get("retryer")
			// What the default says of all clients is reported once.
			if class == nil || !tree.Same(p.Key, "default") && class.At == section.Fold("default", "retryer").Place() {
				r.quiet(p.At)
				continue
			}
			r.feignClient(p.Key, doc.profile, class, s)
		}
	}
}

// feignClient reads one client that has a retryer.
func (r *reader) feignClient(name, profile string, class *tree.Node, s scope) {
	if name == "default" {
		name = "feign clients"
	}
	d := policyfile.Dependency{Name: name, Route: profile, At: class.At, Protocol: "http"}
	text, _ := resolved(class)
	switch text {
	case "feign.Retryer.NEVER_RETRY", "feign.Retryer$NEVER_RETRY":
		r.quiet(d.At)
		return
	case "feign.Retryer.Default", "feign.Retryer$Default":
		retries(&d, feignAttempts-1, d.At)
	default:
		retries(&d, 1, d.At)
		r.open(d.At, &d, "%s: the class %s decides how it retries", name, text)
		unbounded(&d)
		r.cannot(&d, "R-3", "total.missing", "a Retryer cannot bound a call and its retries together")
		r.cannot(&d, "R-7", "budget", "a Retryer has no retry budget")
		r.add(d)
		return
	}
	grow(&d, feignPeriod*3/2, feignFactor, feignMost)
	d.Policy.PerAttempt = r.springTime(&d, "per_attempt", s.get("read-timeout"), feignRead)
	r.refuse(d.At, "R-1", &d, "backoff.jitter", "Feign's Retryer.Default waits without jitter")
	r.refuse(d.At, "R-6", &d, "methods", "Feign's Retryer.Default repeats every method after an I/O error, even POST without an Idempotency-Key")
	r.cannot(&d, "R-3", "total.missing", "a Retryer cannot bound a call and its retries together")
	r.cannot(&d, "R-5", "", "Feign's Retryer.Default cuts Retry-After to 1s: a server that asks for a pause is called again too early")
	r.cannot(&d, "R-7", "budget", "a Retryer has no retry budget")
	r.add(d)
}

// springTarget names what a route leads to: "payments" for "lb://payments", the host of
// another address.
func springTarget(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return cmp.Or(u.Host, u.Opaque)
}

// springRead are the groups of settings whose retries are read, here or by the reader of
// resilience4j.
var springRead = []string{
	"resilience4j", "feign", "spring.cloud.gateway", "spring.cloud.openfeign", "spring.cloud.stream.bindings",
	"spring.cloud.stream.default", "spring.rabbitmq.listener", "spring.rabbitmq.template", "spring.kafka.retry.topic",
}

// springUnread notes the settings for retries that nothing reads: of other parts of
// Spring, such as Consul's, and of the program itself.
func (r *reader) springUnread(doc springDoc) {
	var visit func(n *tree.Node, path string)
	visit = func(n *tree.Node, path string) {
		for _, p := range n.Fields() {
			below := strings.TrimPrefix(path+"."+p.Key, ".")
			n, known := count(p.Value)
			switch {
			case slices.ContainsFunc(springRead, func(s string) bool { return tree.Same(s, below) }), below == "logging":
			case !aboutRetries(p.Key), slices.ContainsFunc(springRead, func(s string) bool { return strings.HasPrefix(s, strings.ToLower(below)+".") }):
				visit(p.Value, below)
			case known && n == 0, p.Value.Text() == "false", p.Value.Map() && !springTrue(p.Value.Fold("enabled"), true):
				// It is switched off.
			default:
				for v := p.Value; len(v.Fields()) == 1; v = v.Pairs[0].Value {
					below += "." + v.Pairs[0].Key // as it may stand in the file
				}
				r.unjudged(p.At, "", "%s has retry settings, and is not judged", below)
			}
		}
	}
	visit(doc.scope[0], "")
}
