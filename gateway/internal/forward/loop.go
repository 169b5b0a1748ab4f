package forward

import (
	"net/http"
	"strconv"
	"strings"
)

// Loops reports whether a request has passed this gateway before.
func (o Origin) Loops(r *http.Request) bool {
	for _, list := range r.Header["Via"] {
		if o.Pseudonym != "" && strings.Contains(list, o.Pseudonym) {
			return true
		}
	}
	return false
}

// Last reports whether a request is not to be passed on but responded to here: an
// OPTIONS that has no hop left (RFC 9110 section 7.6.2).
func Last(r *http.Request) bool {
	n, ok := hopsLeft(r)
	return ok && n == 0
}

// hopsLeft returns how often a request may still be passed on. The header has no meaning
// for other methods than OPTIONS and TRACE, and TRACE is refused.
func hopsLeft(r *http.Request) (n uint64, ok bool) {
	v := r.Header["Max-Forwards"]
	if r.Method != http.MethodOptions || len(v) != 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(v[0], 10, 32)
	return n, err == nil
}
