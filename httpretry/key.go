package httpretry

import (
	"net/http"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/httpcode"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/internal/uuid"
)

// NeedsKey reports whether a request with this method is safe to repeat only
// with an idempotency key: every method but the idempotent ones of RFC
// 9110 section 9.2.2. An unknown method is not idempotent.
func NeedsKey(method string) bool { return httpcode.NeedsKey(method) }

// ownKey returns the key for a request that brought none: the one that the
// caller's context names, or one that forbear makes, if the policy says so.
func (x *exchange) ownKey(mode forbear.KeyMode) string {
	// A redirect to another origin is another server's operation.
	if key := layer.Key(x.req.Context()); key != "" && sameOrigin(x.req) {
		return key
	}
	if mode != forbear.KeyGenerate {
		return ""
	}
	if key := keyOfRedirect(x.req); key != "" {
		return key
	}
	return uuid.New()
}

// keyOfRedirect returns the key that forbear made for the request which was
// redirected to req, if it went to the same host: following a redirect is the
// same logical operation. Another host never learns the key.
func keyOfRedirect(req *http.Request) string {
	if req.Response == nil || req.Response.Request == nil {
		return ""
	}
	from := req.Response.Request
	if from.URL == nil || from.URL.Scheme != req.URL.Scheme || from.URL.Host != req.URL.Host {
		return ""
	}
	return from.Header.Get(HeaderKey)
}
