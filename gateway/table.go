package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// table holds the routes of one host by their prefixes, each with those that are more
// particular first.
type table struct {
	prefixes map[string][]*route
	longest  int // prefix, in bytes
}

// add enters a route in the table of its host. Two routes that take the same requests
// are a fault: which of them won would depend on the order of a file.
func (g *Gateway) add(rt *route) error {
	host := strings.ToLower(rt.Host)
	t := g.hosts[host]
	if t == nil {
		t = &table{prefixes: map[string][]*route{}}
		g.hosts[host] = t
	}
	key := rt.Prefix
	if key == "" {
		key = "/"
	}
	for _, other := range t.prefixes[key] {
		if !other.apart(rt) {
			return fmt.Errorf("another route already takes %s", host+rt.Prefix)
		}
	}
	t.longest = max(t.longest, len(key))
	t.prefixes[key] = append(t.prefixes[key], rt)
	slices.SortStableFunc(t.prefixes[key], (*route).compare)
	return nil
}

// apart reports whether no request, or an order between them, makes one of two routes
// of a prefix superfluous.
func (rt *route) apart(other *route) bool {
	if !maps.Equal(rt.Headers, other.Headers) {
		return true
	}
	if (len(rt.Methods) == 0) != (len(other.Methods) == 0) {
		return true
	}
	return len(rt.Methods) > 0 && !slices.ContainsFunc(rt.Methods, func(m string) bool { return slices.Contains(other.Methods, m) })
}

// compare puts the route that asks for more before the other.
func (rt *route) compare(other *route) int {
	if n := len(other.Headers) - len(rt.Headers); n != 0 {
		return n
	}
	return min(len(other.Methods), 1) - min(len(rt.Methods), 1)
}

// table returns the routes for a Host header, which may have a port, and whether a route
// names that host.
func (g *Gateway) table(host string) (t *table, named bool) {
	if len(g.hosts) > 1 || g.hosts[""] == nil {
		host = withoutPort(host)
		if t = g.hosts[strings.ToLower(host)]; t != nil && host != "" {
			return t, true
		}
	}
	return g.hosts[""], false
}

// withoutPort returns the host of a Host header.
func withoutPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return host[:i]
	}
	return host
}

// match returns the route of a request: of those whose prefix is the longest, the first
// that takes it. Without one, allow are the methods that would have had a route.
func (t *table) match(r *http.Request) (rt *route, allow []string) {
	if t == nil || r.URL.Path == "" || r.URL.Path[0] != '/' {
		return nil, nil
	}
	p := r.URL.Path
	if len(p) > t.longest {
		// No prefix ends in the middle of a segment.
		if p = p[:t.longest+1]; p[t.longest] == '/' {
			p = p[:t.longest]
		} else {
			p = p[:strings.LastIndexByte(p, '/')]
		}
	}
	for p != "" {
		if rt, allow = takes(t.prefixes[p], r, allow); rt != nil {
			return rt, nil
		}
		p = p[:strings.LastIndexByte(p, '/')]
	}
	return takes(t.prefixes["/"], r, allow)
}

// takes returns the first of the routes that takes a request.
func takes(routes []*route, r *http.Request, allow []string) (*route, []string) {
	for _, rt := range routes {
		if !rt.has(r.Header) {
			continue
		}
		if len(rt.Methods) == 0 || slices.Contains(rt.Methods, r.Method) {
			return rt, nil
		}
		allow = append(allow, rt.Methods...)
	}
	return nil, allow
}

// has reports whether a request has the headers that the route asks for.
func (rt *route) has(h http.Header) bool {
	for name, value := range rt.Headers {
		if v := h[name]; len(v) != 1 || v[0] != value {
			return false
		}
	}
	return true
}
