package foreign

import (
	"bytes"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// software is a program whose files are recognized and not read. A file of its that
// sets retries must not pass as if it had been judged.
type software struct {
	name string
	// file is what its files are called, as a pattern in lower case.
	file string
	// groups and kinds are those of its resources of Kubernetes: without kinds, all of them.
	groups, kinds []string
	// keys are what a map of its has: "a.b" is a path, "a=b" a text, and "a+b" asks for
	// both. The spelling of keys does not matter, as for [tree.Node.Fold].
	keys []string
	// prefix begins a key or a text of its, such as a label.
	prefix string
	// sets matches a text in a notation of its own that sets retries.
	sets *regexp.Regexp
	// always says that it retries where nothing is written.
	always bool
}

// recognized are the programs whose files are named. None has a reader, since few public
// files of theirs set retries.
var recognized = []software{
	{name: "App Mesh", groups: []string{"appmesh.k8s.aws"}, keys: []string{"Type=AWS::AppMesh::Route", "virtualRouterName+routeName"}},
	{name: "Argo CD", groups: []string{"argoproj.io"}, kinds: []string{"Application", "ApplicationSet"}},
	{name: "Argo Events", groups: []string{"argoproj.io"}, kinds: []string{"Sensor"}},
	{name: "Caddy", file: "*caddyfile*", keys: []string{"handler=reverse_proxy"}, sets: regexp.MustCompile(`(?m)^\s*lb_(retries|try_duration)\s`)},
	{
		name: "Celery", file: "*celery*.py",
		sets: regexp.MustCompile(`(?m)^[^#\n]*(\bCELERY_\w*(RETR|ANNOTATIONS)|\b(task|broker|result)_\w*retr|\btask_annotations\b|@[\w.]*task\([^)]*retr|\bautoretry_for\b)`),
	},
	{
		name: "Consul", groups: []string{"consul.hashicorp.com"}, keys: []string{"kind=service-router", "kind=http-route"},
		sets: regexp.MustCompile(`(?is)\bkind"?\s*=\s*"(service-router|http-route)".*retr`),
	},
	{name: "the first API of Envoy", keys: []string{"cluster_manager+listeners"}},
	{name: "EnvoyFilter", groups: []string{"networking.istio.io"}, kinds: []string{"EnvoyFilter"}},
	{name: "Kuma", groups: []string{"kuma.io"}, kinds: []string{"MeshRetry", "Retry"}, keys: []string{"type=MeshRetry+spec", "type=Retry+destinations"}},
	{name: ".NET", keys: []string{"MaxRetryAttempts+UseJitter", "MaxRetryAttempts+BackoffType", "Retry.MaxRetryAttempts", "AttemptTimeout+TotalRequestTimeout"}, always: true},
	{name: "Sidekiq", file: "sidekiq.y*ml", keys: []string{":max_retries"}, always: true},
	{name: "Temporal", keys: []string{"retryPolicy.backoffCoefficient", "retryPolicy.nonRetryableErrorTypes", "retryPolicy.maximumAttempts+retryPolicy.initialInterval"}, prefix: "history.default"},
	{
		name: "Traefik", groups: []string{"traefik.io", "traefik.containo.us"}, keys: []string{"http.middlewares", "http.routers", "middlewares+routers"}, prefix: "traefik.http.",
		sets: regexp.MustCompile(`(?im)^\s*\[+[\w".-]*middlewares\.[\w".-]+\.(retry|buffering)\]`),
	},
}

// sighted looks for the software that a map or a list is of, and records it. It reports
// whether there is one that sets retries.
func (o *opener) sighted(n *tree.Node) bool {
	if o.format != "" {
		return false
	}
	for i := range recognized {
		s := &recognized[i]
		if !s.has(n) {
			continue
		}
		at := retriesIn(n)
		if at.Line == 0 && s.always {
			at = n.At
		}
		o.names(s, at)
		return at.Line > 0
	}
	return false
}

// has reports whether a map or a list is of the software.
func (s *software) has(n *tree.Node) bool {
	if s.prefix != "" && (slices.ContainsFunc(n.Pairs, func(p tree.Pair) bool { return strings.HasPrefix(p.Key, s.prefix) }) ||
		slices.ContainsFunc(n.Items, func(item *tree.Node) bool { return strings.HasPrefix(item.Text(), s.prefix) })) {
		return true
	}
	group, _, _ := strings.Cut(n.Get("apiVersion").Text(), "/")
	if slices.Contains(s.groups, group) {
		return len(s.kinds) == 0 || slices.Contains(s.kinds, n.Get("kind").Text())
	}
	return slices.ContainsFunc(s.keys, func(keys string) bool {
		for want := range strings.SplitSeq(keys, "+") {
			keys, text, given := strings.Cut(want, "=")
			v := n.Fold(strings.Split(keys, ".")...)
			if v == nil || given && v.Text() != text {
				return false
			}
		}
		return true
	})
}

// retriesIn returns where n first says something of retries, or zero.
func retriesIn(n *tree.Node) (at policyfile.Position) {
	if mentionsRetries([]byte(n.Get("kind", "type").Text())) {
		return n.At
	}
	n.Walk(func(n *tree.Node) bool {
		for _, p := range n.Pairs {
			if at.Line == 0 && mentionsRetries([]byte(p.Key)) {
				at = p.At
			}
		}
		for _, item := range n.Items {
			if at.Line == 0 && mentionsRetries([]byte(item.Text())) {
				at = item.At
			}
		}
		return at.Line == 0
	})
	return at
}

// called looks for the software that a text is of: by the name of its file, or by what it
// says in a notation of its own.
func (o *opener) called(name string, data []byte, in frame) bool {
	if o.format != "" {
		return false
	}
	base := strings.ToLower(path.Base(filepath.ToSlash(name)))
	for i := range recognized {
		s := &recognized[i]
		named, _ := path.Match(s.file, base)
		var at policyfile.Position
		if s.sets != nil && !structuredName(name) {
			if found := s.sets.FindIndex(data); found != nil {
				at = in.at(policyfile.Position{Line: 1 + bytes.Count(data[:found[1]-1], []byte("\n"))})
			}
		}
		if named && s.always {
			at = in.at(policyfile.Position{})
		}
		if named || at.Line > 0 {
			o.names(s, at)
			return true
		}
	}
	return false
}

// names records software that no reader is for: a file that sets retries is a fault, once.
func (o *opener) names(s *software, at policyfile.Position) {
	message := s.name + ": forbear does not read this format"
	switch {
	case at.Line == 0:
		o.sight = message
	case !slices.ContainsFunc(o.Faults, func(f *policyfile.Fault) bool { return f.Message == message }):
		o.fault(at, "%s", message)
	}
}
