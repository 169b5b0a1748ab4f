package probe

import "time"

// protocol is what a client speaks.
type protocol struct {
	name    string // as in the kinds of a policy file's classes
	address string // the placeholder of the address
	failure string // that of an outage
	cases   func() []Case
	hang    string // the case without a response
	// redials is how long after a connection was refused the client looks for the next one,
	// whatever its retries ask for: channels of gRPC have a backoff of their own, from 1 s on,
	// 20 % more or less, and calls fail meanwhile without leaving a trace.
	redials time.Duration
}

var (
	overHTTP = &protocol{name: "http", address: "{url}", failure: "503", cases: cases, hang: "R-4/hang/GET"}
	overGRPC = &protocol{name: "grpc", address: "{target}", failure: "UNAVAILABLE", cases: grpcCases, hang: "R-4/hang", redials: 1200 * time.Millisecond}
)
