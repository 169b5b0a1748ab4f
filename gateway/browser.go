package gateway

import (
	"net"
	"net/http"
)

// A route that adds credentials of the gateway's own is out of reach of pages in a
// browser. A page reaches what listens on loopback, and beyond it what its user reaches:
// by its own name, which it has resolve to that address, or from another origin. Programs
// send neither Origin nor Sec-Fetch-Site.
var (
	wrongHost   = newProblem(http.StatusForbidden, "host", "Wrong host", "this route adds the gateway's credentials, so it answers only to loopback names and the hosts of its routes")
	crossOrigin = newProblem(http.StatusForbidden, "cross-origin", "Cross-origin request", "this route adds the gateway's credentials, so it refuses requests from pages of other origins")
)

// origins refuses requests that browsers say are from other origins.
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
