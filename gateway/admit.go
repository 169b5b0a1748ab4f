package gateway

import (
	"cmp"
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
