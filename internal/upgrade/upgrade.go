// Package upgrade keeps a server from changing what an exchange is: a request that
// asks for no other protocol ends with a response, in its time.
//
// After 101 Switching Protocols net/http hands the connection over, as it is, and takes
// back all bounds: neither the request's context nor the client's timeout ends a Read of
// what it gives as the body.
package upgrade

import "net/http"

// Refuse closes the connection of an upgrade that no one has asked for, which RFC 9110
// section 15.2.2 forbids servers: what remains is a response with the status 101 and no
// body. Other responses, and nil, stay as they are.
func Refuse(resp *http.Response) {
	if resp == nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return
	}
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	resp.Body, resp.ContentLength = http.NoBody, 0
}
