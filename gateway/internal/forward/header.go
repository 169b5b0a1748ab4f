package forward

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// The values of headers that are the same in each request.
var (
	teTrailers   = []string{"trailers"}
	upgradeToken = []string{"Upgrade"}
	noValue      = []string{""}
)

// EndToEnd copies those headers from src into dst that are not for the one connection
// alone (RFC 9110 section 7.6.1). The values are shared.
func EndToEnd(dst, src http.Header) {
	named := src["Connection"]
	for name, values := range src {
		if !hopByHop(name) {
			dst[name] = values
		}
	}
	for _, list := range named {
		for option := range strings.SplitSeq(list, ",") {
			delete(dst, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(option)))
		}
	}
}

// hopByHop reports whether a header is for one connection. Proxy-Connection is no
// standard's, and is sent by old clients. HTTP2-Settings belongs to an upgrade to
// HTTP/2, which is never passed on.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Http2-Settings":
		return true
	}
	return false
}

// hasToken reports whether one of the lists has a token, in any case. Parameters of an
// element make it another one.
func hasToken(lists []string, token string) bool {
	for _, list := range lists {
		for element := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(textproto.TrimString(element), token) {
				return true
			}
		}
	}
	return false
}

// inTrailers reports whether a field may follow a body. Those by which a message is
// framed, routed, authenticated, understood or kept, and those that the gateway has
// decided on, say so before the body or not at all (RFC 9110 section 6.5.1): a reader
// that adds them to the headers later has been led around what was checked.
func inTrailers(name string) bool {
	switch name {
	case "Content-Length", "Host", // framing and routing; see hopByHop for more
		"Content-Encoding", "Content-Type", "Content-Range", "Content-Location", "Content-Disposition",
		"Authorization", "Www-Authenticate", "Cookie", "Set-Cookie",
		"Cache-Control", "Expect", "Max-Forwards", "Pragma", "Range", "Realm",
		"Age", "Date", "Expires", "Location", "Retry-After", "Vary",
		"Via", "Idempotency-Key", "X-Idempotency-Key", "Idempotent-Replayed",
		"X-Correlation-Id", "X-Request-Id", "X-Request-Deadline", "X-Retry-Attempt":
		return false
	}
	return token(name) && !hopByHop(name) && !saysOrigin(name) &&
		!strings.HasPrefix(name, "If-") && !strings.HasPrefix(name, "Forbear-") && !strings.HasPrefix(name, "X-Forbear-")
}

// announced returns the trailers that a request announces, without their values, or nil
// for none that may go on. net/http's own has room for those too that were not
// announced.
func announced(trailer http.Header) http.Header {
	var names http.Header
	for name := range trailer {
		if inTrailers(name) {
			if names == nil {
				names = make(http.Header, len(trailer))
			}
			names[name] = nil
		}
	}
	return names
}

// fill gives announced trailers the values that have come.
func fill(names, trailer http.Header) {
	for name := range names {
		names[name] = trailer[name]
	}
}

// announce names the trailers of a response that are known beforehand.
func announce(h, trailer http.Header) {
	for name := range trailer {
		if inTrailers(name) {
			h["Trailer"] = append(h["Trailer"], name)
		}
	}
}

// addTrailers adds the trailers of a response whose body was passed on. Those that were
// announced have their names already.
func addTrailers(h, trailer http.Header) {
	known := h["Trailer"]
	for name, values := range trailer {
		switch {
		case !inTrailers(name):
		case slices.Contains(known, name):
			h[name] = values
		default:
			h[http.TrailerPrefix+name] = values
		}
	}
}

// token reports whether a name is one of a header. net/http's parser lets a space
// before the colon be a part of it.
func token(name string) bool { return name != "" && !strings.Contains(name, " ") }
