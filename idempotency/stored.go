package idempotency

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/unstored"
)

// kept are the response headers that are stored.
var kept = []string{
	"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Content-Location", "Location", "Link", "Etag", "Last-Modified", "Cache-Control", "Vary",
}

// storable returns the names that a handler with these options stores.
func storable(extra []string) map[string]bool {
	names := map[string]bool{}
	for _, n := range append(slices.Clone(kept), extra...) {
		if !unstored.Is(n) {
			names[textproto.CanonicalMIMEHeaderKey(n)] = true
		}
	}
	return names
}

// AllHeaders in [Options.KeepHeaders] stores all headers but those of one exchange: cookies
// and other credentials, ids of requests and traces, what is counted or timed, and what is
// for the connection. Where they are more than 64 KiB, the list is stored. It is for what stands in front of services whose headers it does
// not know.
const AllHeaders = "*"

// ofOneExchange reports whether a header says something of the exchange it came in, and
// nothing of what was done.
func ofOneExchange(name string) bool {
	lower := strings.ToLower(name)
	for _, prefix := range []string{"x-ratelimit-", "ratelimit", "x-b3-", "forbear-"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	switch lower {
	case "x-request-id", "request-id", "x-correlation-id", "x-trace-id", "traceparent", "tracestate", "traceresponse", "server-timing",
		"x-runtime", "x-response-time", "age", "via", "alt-svc", "expect-ct", "nel", "report-to", "x-retry-attempt", "x-forbear-no-retry":
		return true
	}
	return unstored.Is(name)
}

// maxAllHeaders bounds what is stored of headers whose names are not known, in bytes: of
// more the list is kept.
const maxAllHeaders = 64 << 10

// sizeOf returns about how many bytes headers are.
func sizeOf(h http.Header) (n int) {
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}

// stored is what is kept of the response. names may have [AllHeaders].
func (r *recorder) stored(names map[string]bool, tombstone string) Response {
	r.WriteHeader(http.StatusOK)
	hop := map[string]bool{}
	for _, line := range r.sent["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			hop[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	a := Response{Status: r.status, Header: http.Header{}, Tombstone: tombstone}
	all := names[AllHeaders] && sizeOf(r.sent) <= maxAllHeaders
	for name, values := range r.sent {
		if (names[name] || all && !ofOneExchange(name)) && !hop[name] && values != nil {
			a.Header[name] = slices.Clone(values)
		}
	}
	if tombstone == "" {
		a.Body = slices.Clone(r.buf.Bytes())
		// What was sent with no value is to have none.
		if _, said := r.sent["Content-Type"]; !said && len(a.Body) > 0 {
			a.Header.Set("Content-Type", http.DetectContentType(a.Body)) // as net/http does for the first response
		}
	}
	return a
}
