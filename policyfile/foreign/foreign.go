// Package foreign reads the retry settings of other software into the form of a policy
// file, so that they are held against the same standard. Findings carry the positions of
// the files that were read.
//
// [Open] looks at one file: what it is, by its parsed structure, and what lies inside of
// it, such as an Envoy configuration in a Kubernetes ConfigMap. [Read] then reads the parts
// of all files together, product by product, since one file may hold a route and another
// its cluster.
//
// A reader is a row of the table products, and a method that turns the parts of its product
// into dependencies:
//
//   - It translates what the product calls by another name: attempts that count the first
//     call become retries.
//   - It refuses what breaks a rule (refuse), and the ranges of the standard apply to what
//     it adds (add).
//   - It notes a rule that the product cannot hold, whatever is written, once a file (cannot),
//     and what might matter and could not be judged (unjudged, open).
//   - It never calls a field a fault because it does not know it.
//
// Files of the same product's name have its reader. The others are shared: open.go and inner.go
// find the parts, closest.go joins them across files, reader.go records what is said, and
// figures.go reads values. recognized.go has the table of software that is named and not read.
//
// Experimental: what this package exports may change in any version.
package foreign

import (
	"slices"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// product is other software whose configuration is read. A new one is a file of
// this package and a line of products.
type product struct {
	name, title string
	// claims reports whether a map of a structured file is the product's. It looks
	// at keys and kinds, and never at a text inside of a value.
	claims func(n *tree.Node) bool
	// own returns the values in a map that it claims which are its own: the others are
	// looked into as if no product had claimed the map. Without it, or where it
	// returns none, all are.
	own func(n *tree.Node) []*tree.Node
	// holds says that what it claims may hold the configuration of others, as the
	// environment of a pod does, so that it is looked into as well.
	holds bool
	// speaks reports whether a text in a notation of the product's own is one. A
	// fault says what keeps a text that is one from being read.
	speaks func(name string, data []byte) (bool, *policyfile.Fault)
	// read reads r.parts.
	read func(r *reader)
	// beside names other products, whose parts are read along as r.beside.
	beside []string
}

// products are asked in this order: the first that claims a part gets it.
var products = []product{
	{name: "grpc", title: "gRPC", claims: claimsGRPC, own: under((*tree.Node).Fold, "method_config", "retry_throttling", "load_balancing_config", "health_check_config"), read: (*reader).grpc},
	{name: "istio", title: "Istio", claims: claimsIstio, own: ownIstio, read: (*reader).istio},
	{name: "envoy", title: "Envoy", claims: claimsEnvoy, read: (*reader).envoy},
	{name: "ingressnginx", title: "ingress-nginx", claims: claimsIngress, own: under((*tree.Node).Get, slices.Concat(ingressKeys, ingressNotes)...), read: (*reader).ingressNginx},
	{name: "envoygateway", title: "Envoy Gateway", claims: claimsEnvoyGateway, read: (*reader).envoyGateway, beside: []string{"gatewayapi", "linkerd"}},
	{name: "linkerd", title: "Linkerd", claims: claimsLinkerd, read: (*reader).linkerd},
	{name: "gatewayapi", title: "Gateway API", claims: claimsGatewayAPI, read: (*reader).gatewayAPI},
	{name: "resilience4j", title: "resilience4j", claims: claimsResilience4j, own: ownResilience4j, read: (*reader).resilience4j},
	{name: "spring", title: "Spring", claims: claimsSpring, read: (*reader).spring},
	{name: "aws", title: "AWS's SDKs", claims: claimsAWS, own: ownAWS, holds: true, read: (*reader).aws},
	{name: "k8sjob", title: "Kubernetes", claims: claimsJob, own: ownJob, holds: true, read: (*reader).k8sJob},
	{name: "argo", title: "Argo Workflows", claims: claimsArgo, own: ownArgo, holds: true, read: (*reader).argo},
	{name: "stepfunctions", title: "Step Functions", claims: claimsStates, read: (*reader).stepFunctions},
	{name: "nginx", title: "nginx", speaks: speaksNginx, read: (*reader).nginx},
	{name: "haproxy", title: "HAProxy", speaks: speaksHAProxy, read: (*reader).haproxy},
}

// under returns what finds the values that a map has under some keys.
func under(get func(n *tree.Node, key ...string) *tree.Node, keys ...string) func(n *tree.Node) []*tree.Node {
	return func(n *tree.Node) (own []*tree.Node) {
		for _, key := range keys {
			if v := get(n, key); v != nil {
				own = append(own, v)
			}
		}
		return own
	}
}

// Formats lists the names of the products, in the order in which the help shows
// them.
func Formats() (names []string) {
	for _, p := range products {
		names = append(names, p.name)
	}
	return names
}

// Title is what a product of [Formats] is called in sentences.
func Title(format string) string {
	i := slices.IndexFunc(products, func(p product) bool { return p.name == format })
	if i < 0 {
		return format
	}
	return products[i].title
}

// Result is what one file holds of one product.
type Result struct {
	File *policyfile.File
	// Refused holds the rules of the standard that it breaks.
	Refused []*policyfile.Fault

	unheeded []int // lines in which Retry-After is not heeded
}

// Empty reports whether the file holds nothing that was judged, or could have been.
func (r *Result) Empty() bool {
	f := r.File
	return len(f.Dependencies)+f.Quiet+len(f.Unjudged)+len(f.Limits)+len(r.Refused) == 0 && f.Unread == nil
}

// Read reads the parts of all files. Parts of one product are read together: a
// cluster, an upstream or a rule may stand in another file than what uses it. The
// results are in the order of the products, and then of the files.
func Read(parts []Part) (results []Result) {
	for _, p := range products {
		r := &reader{format: p.name, results: map[string]*Result{}, told: memory{}}
		for _, part := range parts {
			switch {
			case part.Format == p.name:
				r.parts = append(r.parts, part)
				r.result(part.Name) // a file without a unit is recognized all the same
				if part.beside != nil {
					r.result(part.Name).File.Unread = part.beside
				}
			case slices.Contains(p.beside, part.Format):
				r.beside = append(r.beside, part)
			}
		}
		if len(r.parts) == 0 {
			continue
		}
		p.read(r)
		for _, name := range r.names {
			r.results[name].alsoIn()
			results = append(results, *r.results[name])
		}
	}
	return results
}

// known reports whether there is a product of that name.
func known(format string) bool { return slices.Contains(Formats(), format) }
