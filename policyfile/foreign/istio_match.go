package foreign

import (
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// istioAsks returns a header that a route or one of its destinations adds to ask Envoy for
// retries, or "".
func istioAsks(scopes ...*tree.Node) (asks tree.Pair) {
	for _, scope := range scopes {
		for _, how := range []string{"set", "add"} {
			for _, p := range scope.Get("headers").Get("request").Get(how).Fields() {
				if retryHeader.MatchString(p.Key) {
					return p
				}
			}
		}
	}
	return asks
}

// bound reports whether what the route matches may be repeated: every alternative
// names idempotent methods, or asks for a key. A single one that does not lets any of
// them through.
func (x *istioRoute) bound() bool {
	matches := x.node.Get("match").List()
	return len(matches) > 0 && !slices.ContainsFunc(matches, func(m *tree.Node) bool { return !istioSafe(m) })
}

func istioSafe(match *tree.Node) bool {
	if headers := match.Get("headers"); headers != nil {
		for _, p := range headers.Pairs {
			if strings.EqualFold(p.Key, "Idempotency-Key") {
				return true
			}
		}
	}
	for _, method := range unkeyed {
		if accepted, known := matches(match.Get("method"), "", false, method); accepted || !known {
			return false
		}
	}
	return true
}

// identity tells the routes of a file apart.
func (x *istioRoute) identity() string {
	parts := []string{namespaceOf(x.resource), x.resource.Get("metadata").Get("name").Text(), x.node.Get("name").Text()}
	if match := x.node.Get("match"); match != nil && x.node.Get("name").Text() == "" {
		parts = append(parts, flat(match))
	}
	return spaced(parts)
}
