package foreign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// ingressPrefix is that of the annotations of ingress-nginx.
const ingressPrefix = "nginx.ingress.kubernetes.io/"

// ingressTries is the default of proxy-next-upstream-tries. ingress-nginx's page on
// its ConfigMap has the defaults: "error timeout", 3 tries, no time.
const ingressTries = 3

// ingressKeys are the settings of retries, and ingressNotes the annotations of their names.
// ingressOthers are settings that no other software has: the data of a ConfigMap, or a
// chart's values for it, are known by either.
var (
	ingressKeys   = []string{"proxy-next-upstream", "proxy-next-upstream-tries", "proxy-next-upstream-timeout", "retry-non-idempotent"}
	ingressNotes  = []string{ingressPrefix + "proxy-next-upstream", ingressPrefix + "proxy-next-upstream-tries", ingressPrefix + "proxy-next-upstream-timeout", ingressPrefix + "retry-non-idempotent"}
	ingressOthers = []string{"allow-snippet-annotations", "annotations-risk-level", "compute-full-forwarded-for", "enable-modsecurity", "proxy-real-ip-cidr"}
	ingressData   = slices.Concat(ingressKeys, ingressOthers)
)

// ingressConfig reports whether a map is the data of the controller's ConfigMap.
func ingressConfig(n *tree.Node) bool {
	return slices.ContainsFunc(ingressData, func(key string) bool {
		v := n.Get(key)
		return v != nil && v.Kind == tree.Scalar
	})
}

// claimsIngress knows an Ingress of the class nginx or with an annotation of
// ingress-nginx, its ConfigMap's data, and annotations alone, as a chart's values
// have them. The controller of NGINX Inc. has another prefix.
func claimsIngress(n *tree.Node) bool {
	if ingressConfig(n) || slices.ContainsFunc(ingressNotes, n.Has) {
		return true
	}
	if !resource(n, "networking.k8s.io", "Ingress") && !resource(n, "extensions", "Ingress") {
		return false
	}
	class := n.Get("spec").Get("ingressClassName").Text() + annotation(n, "kubernetes.io/ingress.class").Text()
	known := strings.Contains(class, "nginx")
	for _, p := range n.Get("metadata").Get("annotations").Fields() {
		if strings.HasPrefix(p.Key, "nginx.org/") {
			return false
		}
		known = known || strings.HasPrefix(p.Key, ingressPrefix)
	}
	return known
}

// ingressSettings are the annotations of an Ingress, and behind them the ConfigMap
// of the controller.
type ingressSettings struct {
	annotations, config *tree.Node
}

// get returns what holds for a setting, or nil for the default.
func (s ingressSettings) get(key string) *tree.Node {
	if v := s.annotations.Get(ingressPrefix + key); v != nil {
		return v
	}
	return s.config.Get(key)
}

// ingressNginx reads Ingresses with the ConfigMap that stands beside them. The
// controller retries without being asked: an Ingress that says nothing is judged too.
func (r *reader) ingressNginx() {
	configs, mains := named{}, named{}
	for part := range r.each() {
		if ingressConfig(part.Root) {
			configs.add(part, "", part.Root)
		} else if !ingressCanary(part.Root).True() {
			for _, place := range ingressPlaces(part.Root) {
				mains.add(part, place, part.Root)
			}
		}
	}
	used := map[*tree.Node]bool{}
	for part := range r.each() {
		if ingressConfig(part.Root) {
			continue
		}
		config, several := configs.in(part, "")
		if several {
			r.unjudged(part.Root.At, "", "there are several ConfigMaps of ingress-nginx: none of them is applied to this Ingress")
		}
		used[config] = true
		if part.Root.Has("spec") {
			r.ingress(part.Root, config, mains)
			continue
		}
		d := policyfile.Dependency{Name: "ingress", At: part.Root.At, Protocol: "http"}
		r.ingressUnit(&d, ingressSettings{part.Root, config})
	}
	for _, config := range configs[""] {
		if !used[config.node] { // nothing here is behind it, and so it stands for all
			d := policyfile.Dependency{Name: "ingress-nginx", At: config.node.At, Protocol: "http"}
			r.ingressUnit(&d, ingressSettings{nil, config.node})
		}
	}
}

// ingressCanary returns the annotation by which an Ingress takes a share of the requests
// of another one, or nil.
func ingressCanary(n *tree.Node) *tree.Node { return annotation(n, ingressPrefix+"canary") }

// ingressPlaces are the places at which an Ingress takes requests.
func ingressPlaces(n *tree.Node) (places []string) {
	for _, rule := range n.Get("spec").Get("rules").List() {
		for _, path := range rule.Get("http").Get("paths").List() {
			places = append(places, fmt.Sprintf("%s %s %s", refNamespace(nil, n), rule.Get("host").Text(), cmp.Or(path.Get("path").Text(), "/")))
		}
	}
	return places
}

// ingress reads one Ingress: a unit for each service behind it, since its paths
// share their settings. A canary has those of the Ingress at its place, which the
// controller takes whatever the canary's own annotations say.
func (r *reader) ingress(n, config *tree.Node, mains named) {
	s := ingressSettings{n.Get("metadata").Get("annotations"), config}
	canary := ingressCanary(n)
	orphan := canary.True()
	for _, place := range ingressPlaces(n) {
		if main, _ := mains.in(r.part, place); orphan && main != nil {
			s.annotations, orphan = main.Get("metadata").Get("annotations"), false
		}
	}
	if s.get("ssl-passthrough").True() {
		r.quiet(n.At) // its connections are passed on unread
		return
	}
	seen := map[string]bool{}
	unit := func(backend *tree.Node) {
		name := cmp.Or(backend.Get("service").Get("name"), backend.Get("serviceName"))
		if name.Text() == "" || seen[name.Text()] {
			return
		}
		seen[name.Text()] = true
		d := kubeService(name.Text(), n.Get("metadata").Get("namespace").Text(), name.At)
		d.Route = title(n)
		if orphan {
			retries(&d, 0, d.At)
			d.Longest, d.Lacks = nginxTimeout, []string{"total.missing"}
			r.open(canary.At, &d, "%s is a canary: the annotations of the Ingress with the same host and path apply instead, and it is not in these files", n.Get("metadata").Get("name").Text())
			r.add(d)
			return
		}
		r.ingressUnit(&d, s)
	}
	spec := n.Get("spec")
	unit(spec.Get("defaultBackend", "backend"))
	for _, rule := range spec.Get("rules").List() {
		for _, path := range rule.Get("http").Get("paths").List() {
			unit(path.Get("backend"))
		}
	}
}

// ingressUnit judges what the controller makes of the settings: the directives of
// nginx that have their names.
func (r *reader) ingressUnit(d *policyfile.Dependency, s ingressSettings) {
	when := directive{args: []string{"", "error", "timeout"}, at: d.At}
	if v := s.get("proxy-next-upstream"); v != nil {
		when = directive{args: append([]string{""}, strings.Fields(v.Text())...), at: v.At}
	}
	if v := s.get("retry-non-idempotent"); v != nil && v.True() && !slices.Contains(when.args, "non_idempotent") {
		when.args = append(when.args, "non_idempotent")
	}
	set := map[string]nginxSetting{}
	if v := s.get("proxy-next-upstream-timeout"); v != nil {
		set["proxy_next_upstream_timeout"] = nginxSetting{directive: directive{args: []string{"", v.Text()}, at: v.At}}
	}
	r.ingressTries(d, when, s.get("proxy-next-upstream-tries"))
	d.Policy.PerAttempt = nginxTimeout
	r.time(d, "per_attempt", s.get("proxy-read-timeout"), func(n *tree.Node) (time.Duration, bool) { return nginxTime(n.Text()) }, &d.Policy.PerAttempt)
	for _, key := range []string{"configuration-snippet", "server-snippet", "location-snippet", "http-snippet"} {
		if v := s.get(key); strings.Contains(v.Text(), "next_upstream") {
			r.open(v.At, d, "%s of %s sets proxy_next_upstream outside ingress-nginx's own settings, and is not read", key, d.Name)
		}
	}
	r.ingressTLS(d, s)
	d.Longest = saturated(float64(d.Policy.MaxRetries+1), d.Policy.PerAttempt)
	if !d.Policy.Disabled {
		u := &nginxUnit{
			nginxWalk: &nginxWalk{r: r, told: memory{}}, nginxScope: nginxScope{set: set},
			module: nginxModule{"proxy", "https"}, dep: *d, attempt: d.Policy.PerAttempt, dashed: true,
		}
		u.nextUpstream(when.args[1:], when.at)
		*d = u.dep
	}
	r.add(*d)
}

// ingressTries counts the tries, the first included. The same server may be tried
// again, so that the number of servers is no bound; zero sets none.
func (r *reader) ingressTries(d *policyfile.Dependency, when directive, limit *tree.Node) {
	tries, at := r.number(d, limit, ingressTries, when.at)
	switch {
	case slices.Contains(when.args, "off"):
		tries = 1
	case tries == 0:
		tries = ingressTries
		r.open(at, d, "proxy-next-upstream-tries 0 sets no limit: how often %s is tried is unknown here", d.Name)
	}
	retries(d, tries-1, at)
}

// ingressTLS looks for a backend behind TLS, whose certificate ingress-nginx does not
// check unless proxy-ssl-verify says so. Without proxy-ssl-secret it reads none of
// the annotations proxy-ssl-*.
func (r *reader) ingressTLS(d *policyfile.Dependency, s ingressSettings) {
	protocol := s.get("backend-protocol")
	switch strings.ToUpper(protocol.Text()) {
	case "HTTPS", "GRPCS":
	default:
		return
	}
	switch verify := s.get("proxy-ssl-verify"); {
	case verify.Text() != "on":
		r.refuse(placed(verify, protocol.At), "R-9", d, "tls.verify", "proxy-ssl-verify is off, the default: any certificate is accepted")
	case s.get("proxy-ssl-secret").Text() == "":
		r.refuse(verify.At, "R-9", d, "tls.verify", "proxy-ssl-verify has no effect without proxy-ssl-secret: any certificate is accepted")
	}
}
