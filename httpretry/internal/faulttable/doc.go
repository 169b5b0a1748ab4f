// Package faulttable is a table of tests: each fault that a server, a network, a
// proxy or a caller can have, once through a plain http.Client and once through
// one with forbear's transport over the same kind of connections.
//
// testdata/faults.md is the table as it came out, and docs/http-faults.md explains
// and counts it. TestFaultTable fails when a row has changed, and when forbear
// leaves a caller worse off than net/http alone does, unless the standard forbids
// what net/http did.
//
//	go test ./httpretry/internal/faulttable -update
//
// Servers are real sockets on the loopback address. What they do is a handler for
// each request (http1_test.go) or, for HTTP/2, for each stream (http2_test.go).
package faulttable
