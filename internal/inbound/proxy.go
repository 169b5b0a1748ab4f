package inbound

import (
	"net/http"
	"slices"
	"strings"
)

// Forwarded reports whether a request looks as if a proxy had passed it on from elsewhere:
// one before a loopback address would publish what is there. Many say so in a header. One that
// does not may be known by HTTP/1.0, which nginx has spoken unless told otherwise, and
// clients do not.
func Forwarded(r *http.Request) bool {
	for name := range r.Header {
		if slices.Contains(proxyHeaders, name) || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}

// proxyHeaders are those by which proxies and networks of them say for whom they ask.
var proxyHeaders = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For", "X-Envoy-External-Address",
	"True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "Cdn-Loop",
}
