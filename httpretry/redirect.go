package httpretry

import "net/http"

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
