package gateway

import (
	"cmp"
	"net"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/gateway/internal/forward"
	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/internal/problem"
)

// plainMethods are those that routes take unless they say which.
const plainMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

// admit reports whether a request goes on to its route, which may be nil. It responds to
// one that does not. allow are the methods of the routes that would take it otherwise.
func (g *Gateway) admit(w http.ResponseWriter, x *request, rt *route, allow []string) bool {
	r := x.in
	refuse := func(p problem.Problem) bool { x.problem(w, p); return false }
	switch {
	case !forward.Authority(r.Host):
		return refuse(badHost)
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		w.Header().Set("Allow", cmp.Or(strings.Join(allow, ", "), plainMethods))
		return refuse(badMethod)
	case r.ProtoMajor == 1 && x.grpc:
		return refuse(needsHTTP2)
	case !forward.Sound(r):
		return refuse(badPath)
	case rt == nil && len(allow) > 0:
		w.Header().Set("Allow", strings.Join(allow, ", "))
		return refuse(wrongMethod)
	case rt == nil:
		return refuse(noRoute)
	case forward.Last(r):
		w.Header().Set("Allow", cmp.Or(strings.Join(rt.Methods, ", "), plainMethods))
		w.WriteHeader(http.StatusOK)
		return false
	case g.origin.Loops(r):
		return refuse(loop)
	case rt.Credentials != nil && onLoopback(r) && !loopback.Host(r.Host) && !x.named:
		return refuse(wrongHost)
	case rt.Credentials != nil && foreign(r):
		return refuse(crossOrigin)
	}
	return true
}

// A route that adds credentials of the gateway's own is out of reach of pages in a
// browser. A page reaches what listens on loopback, and beyond it what its user reaches:
// by its own name, which it has resolve to that address, or from another origin. Programs
// send neither Origin nor Sec-Fetch-Site.
var (
	wrongHost   = newProblem(http.StatusForbidden, "host", "Wrong host", "this route adds credentials of the gateway's: it serves loopback names and the hosts of its routes only")
	crossOrigin = newProblem(http.StatusForbidden, "cross-origin", "Cross-origin request", "this route adds credentials of the gateway's: requests of pages of other origins are refused")
)

// origins refuses requests of other origins, by what browsers say of them.
var origins = http.NewCrossOriginProtection()

// onLoopback reports whether a request came to a port of a loopback address, whatever
// else the gateway listens on. No page reaches a unix socket.
func onLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// foreign reports whether a browser sent r for a page of another origin. Reads
// count as well as writes: their response is of no use to the page, but they
// reach the dependency with the gateway's credentials, and count as its calls.
func foreign(r *http.Request) bool {
	if r.Header["Sec-Fetch-Site"] == nil && r.Header["Origin"] == nil {
		return false
	}
	asWrite := *r
	asWrite.Method = http.MethodPost
	return origins.Check(&asWrite) != nil
}
