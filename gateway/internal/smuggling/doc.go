// Package smuggling is a table of tests: how the gateway reads each request
// and each response that two parsers could read in two ways, byte by byte.
//
// testdata/probes.md has each probe with the verdict that it must have and the
// rule behind it; docs/gateway-requests.md explains and counts them. TestProbes
// runs the probes; TestTable fails when the file differs from them:
//
//	go test ./gateway/internal/smuggling -run TestTable -update
//
// The caller and the upstream are raw sockets: nothing of net/http's client or
// server is between a probe and the gateway. How the gateway's server is made is
// one function (serve, in gateway_test.go).
package smuggling
