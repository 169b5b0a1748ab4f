package forward

import (
	"net/http"
	"net/textproto"
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
