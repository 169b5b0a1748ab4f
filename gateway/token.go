package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/internal/loopback"
)

// NewMetrics returns a handler that serves page at GET /metrics and nothing else,
// for an address of its own: anyone who reaches it may read, but not force a breaker. With
// a token callers must bring it as "Authorization: Bearer TOKEN". Without one the
// page is open; where local says that it listens on loopback alone, then only to
// a loopback name, so that no page in a browser reads it by a name of its own.
func NewMetrics(page http.Handler, token string, local bool) http.Handler {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(w, r, http.StatusNotFound, "no-such-page", "No such page", "there is GET /metrics here, and nothing else")
			return
		}
		page.ServeHTTP(w, r)
	})
	if token == "" && !local {
		return pages
	}
	return demand(pages, token)
}

// demand lets in only those who bring one of the tokens; empty ones do not count.
// Without any it serves loopback names, for programs on this machine: a page in
// a browser comes by another name, or is a cross-origin request.
func demand(next http.Handler, tokens ...string) http.Handler {
	var sums [][sha256.Size]byte
	for _, t := range tokens {
		if t != "" {
			sums = append(sums, sha256.Sum256([]byte(t)))
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case len(sums) == 0 && !loopback.Host(r.Host):
			refuse(w, r, http.StatusForbidden, "host", "Wrong host", "without a token the admin endpoint serves loopback names only")
		case len(sums) > 0 && !brings(r, sums):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, "unauthorized", "Unauthorized", "a bearer token is needed")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// brings reports whether a request has a token of one of the sums. It compares
// with all of them, in the same time whichever it is.
func brings(r *http.Request, sums [][sha256.Size]byte) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum, same := sha256.Sum256([]byte(given)), 0
	for _, s := range sums {
		same |= subtle.ConstantTimeCompare(sum[:], s[:])
	}
	return ok && same == 1
}
