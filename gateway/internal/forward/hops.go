package forward

import (
	"net/http"
	"strconv"
)

// Last reports whether a request is not to be passed on but responded to here: an
// OPTIONS that has no hop left (RFC 9110 section 7.6.2).
func Last(r *http.Request) bool {
	n, ok := hopsLeft(r)
	return ok && n == 0
}

// forwardOnce takes one hop off in h, which has the headers of r.
func forwardOnce(h http.Header, r *http.Request) {
	if n, ok := hopsLeft(r); ok && n > 0 && h["Max-Forwards"] != nil {
		h["Max-Forwards"] = []string{strconv.FormatUint(n-1, 10)}
	}
}

// hopsLeft returns how often a request may still be passed on. For other methods than
// OPTIONS and TRACE, which is refused, the header has no meaning.
func hopsLeft(r *http.Request) (n uint64, ok bool) {
	v := r.Header["Max-Forwards"]
	if r.Method != http.MethodOptions || len(v) != 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(v[0], 10, 32)
	return n, err == nil
}
