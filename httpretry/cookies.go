package httpretry

import "net/http"

// A response that is not handed over may have set cookies, such as the one that a
// load balancer keeps its clients by. An http.Client without retries would have put
// them into its jar.

// keepCookies remembers those of a response that is not handed over.
func (x *exchange) keepCookies(resp *http.Response) {
	if set := resp.Header["Set-Cookie"]; len(set) > 0 {
		x.cookies = append(x.cookies, set...)
	}
}

// handCookies gives them to the response that is, before its own, which replace
// those of the same name.
func (x *exchange) handCookies(resp *http.Response) {
	if len(x.cookies) == 0 {
		return
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	resp.Header["Set-Cookie"] = append(x.cookies, resp.Header["Set-Cookie"]...)
}
