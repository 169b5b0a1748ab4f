// Package smuggling is a table of tests: how the gateway reads each request
// and each response that two parsers could read in two ways, byte by byte.
//
// The page docs/gateway-requests.md is the table with the verdict that each
// probe must have and the rule behind it. TestProbes runs them; TestPage fails
// when the page is not the table's:
//
//	go test ./gateway/internal/smuggling -run TestPage -update
//
// The caller and the upstream are raw sockets: nothing of net/http's client or
// server is between a probe and the gateway. How the gateway's server is made is
// one function (serve, in gateway_test.go).
package smuggling
