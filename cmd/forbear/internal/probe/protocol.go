package probe

import "time"

// protocol is what a client speaks.
type protocol struct {
	name    string // as in the kinds of a policy file's classes
	address string // the placeholder of the address
	failure string // that of an outage
	hang    string // the case without a response
	heeded  string // the case whose failure names a wait
	// redials is how long after a connection was refused the client looks for the next one,
	// whatever its retries ask for: channels of gRPC have a backoff of their own, from 1 s on,
	// 20 % more or less, and calls fail meanwhile without leaving a trace.
	redials time.Duration
}

// cases are those that have a meaning for it.
func (p *protocol) cases() []Case {
	if p == overGRPC {
		return grpcCases()
	}
	return cases()
}

var (
	overHTTP = &protocol{name: "http", address: "{url}", failure: "503", hang: "R-4/hang/GET", heeded: "R-5/seconds/503"}
	overGRPC = &protocol{name: "grpc", address: "{target}", failure: "UNAVAILABLE", hang: "R-4/hang", heeded: "R-5/pushback", redials: 1200 * time.Millisecond}
)
