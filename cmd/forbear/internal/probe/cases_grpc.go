package probe

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/wire"
	"github.com/forbear-go/forbear/edge/grpccode"
)

// The codes of gRPC that scripts respond with.
const (
	codeUnavailable     = 14
	codeUnauthenticated = 16
)

// okGRPC is a healthy response.
var okGRPC = wire.GRPC(0)

// unavailable is the failure of an outage.
var unavailable = wire.GRPC(codeUnavailable)

// grpcCases returns the cases of a unary call of gRPC that may be repeated, in the order of
// the report.
func grpcCases() (list []Case) {
	add := func(c Case) {
		if c.watch == 0 {
			c.watch = usualWatch
		}
		list = append(list, c)
	}
	add(Case{ID: healthy, Title: "an empty message and OK", script: steps(okGRPC), judge: judgeHealthy})
	for _, c := range classes {
		one := Case{ID: "R-4/" + c.name, Rule: "R-4", Title: c.name, group: c.group, judge: mustAgain}
		code, _ := grpccode.Parse(c.name)
		if one.script = steps(wire.GRPC(int(code)), okGRPC); c.group == terminal {
			one.script, one.ends, one.judge = steps(wire.GRPC(int(code))), 2, mustNot
		} else if c.group == "" {
			one.judge = told("after " + c.name)
		}
		add(one)
	}
	for _, c := range broken {
		add(Case{ID: "R-4/" + c.id, Rule: "R-4", Title: c.title, script: steps(c.step, okGRPC), judge: c.judge, watch: c.watch})
	}
	add(Case{ID: "R-4/stale", Rule: "R-4", Title: "the kept connection is closed under the next request", late: true, script: stale(unavailable, okGRPC), judge: judgeStale})
	add(Case{ID: "R-6/bytes", Rule: "R-6", Title: "the bytes of a message that is sent again", of: outage, judge: judgeBytes})
	add(Case{ID: "R-6/key", Rule: "R-6", Title: "the idempotency key of a call", of: outage, judge: judgeKeys})
	add(Case{ID: "R-9/UNAUTHENTICATED", Rule: "R-9", Title: "UNAUTHENTICATED", script: steps(wire.GRPC(codeUnauthenticated)), ends: 3, judge: judge401})
	for _, c := range certificates {
		add(Case{ID: c.id, Rule: "R-9", Title: c.title, tls: http2Alone(c.of), script: steps(okGRPC), runs: 3, judge: c.judge})
	}
	add(Case{ID: "R-4/refused", Rule: "R-4", Title: "the next connections are refused", late: true, script: refused(unavailable, okGRPC), watch: longWatch, runs: 8, judge: judgeRefused})
	outages(add, overGRPC, unavailable, "")
	heedsGRPC(add)
	add(Case{ID: "layers", Title: "a server that calls with the same client", question: heeds, script: layered(unavailable), second: unavailable, watch: longWatch, judge: judgeLayers})
	add(Case{ID: "headers", Title: "headers that tell the attempt", question: heeds, of: outage, judge: judgeHeaders})
	add(Case{ID: "deadline", Title: "the deadline that it sends", question: heeds, of: outage, judge: judgeDeadline})
	return list
}

// classes are the codes with the groups of R-4's table. Those that it does not list are
// terminal, as all that is not known is; about UNKNOWN, which gRPC makes of what it cannot
// read, opinions differ.
var classes = []struct{ name, group string }{
	{"UNAVAILABLE", retryable},
	{"DEADLINE_EXCEEDED", retryable},
	{"RESOURCE_EXHAUSTED", retryable},
	{"ABORTED", retryable},
	{"INVALID_ARGUMENT", terminal},
	{"NOT_FOUND", terminal},
	{"PERMISSION_DENIED", terminal},
	{"UNIMPLEMENTED", terminal},
	{"ALREADY_EXISTS", terminal},
	{"FAILED_PRECONDITION", terminal},
	{"OUT_OF_RANGE", terminal},
	{"INTERNAL", terminal},
	{"DATA_LOSS", terminal},
	{"CANCELLED", terminal},
	{"UNKNOWN", ""},
}

// broken are failures in other ways than by a status of gRPC. A response of HTTP without one
// comes from a proxy: gRPC makes UNAVAILABLE of 429, 502, 503 and 504, UNIMPLEMENTED of 404
// and PERMISSION_DENIED of 403. A status behind the header of a response is not sent again by
// gRPC itself (gRFC A6), and is by R-4: no verdict.
var broken = []struct {
	id, title string
	step      wire.Step
	judge     func(*known, []run) Verdict
	watch     time.Duration
}{
	{"http-429", "429 of a proxy", wire.Status(http.StatusTooManyRequests), mustAgain, 0},
	{"http-502", "502 of a proxy", wire.Status(http.StatusBadGateway), mustAgain, 0},
	{"http-503", "503 of a proxy", wire.Status(http.StatusServiceUnavailable), mustAgain, 0},
	{"http-504", "504 of a proxy", wire.Status(http.StatusGatewayTimeout), mustAgain, 0},
	{"http-403", "403 of a proxy", wire.Status(http.StatusForbidden), mustNot, 0},
	{"http-404", "404 of a proxy", wire.Status(http.StatusNotFound), mustNot, 0},
	{"reset", "the connection is reset before the response", wire.Reset, mustAgain, 0},
	{"closed", "the connection is closed before the response", wire.Close, mustAgain, 0},
	{"begun", "UNAVAILABLE after the header of the response", wire.GRPCBegun(codeUnavailable), told("after the header of a response"), 0},
	{"half-message", "half of a message comes, then the connection is closed", wire.GRPCHalf(wire.Close), judgeHalf, 0},
	{"no-status", "a message without a status", wire.GRPCWithoutStatus, told("after a response without a status"), 0},
	{"hang", "no response", wire.Hang, judgeHang, longWatch},
	{"refused-stream", "the stream is refused", wire.RefuseStream, mustAgain, 0},
	{"goaway", "the server says GOAWAY", wire.GoAway, mustAgain, 0},
}

// heedsGRPC adds the cases in which the server names a wait: grpc-retry-pushback-ms of gRFC
// A6, and google.rpc.RetryInfo, whose documentation has clients wait as long. A6 ends the
// call at a pushback that is negative or cannot be read.
func heedsGRPC(add func(Case)) {
	pushback := func(id, value string, runs int, judge func(*known, []run) Verdict) {
		line := "grpc-retry-pushback-ms: " + value
		step := wire.GRPC(codeUnavailable, line)
		script := steps(step, okGRPC)
		if runs > 1 {
			script = steps(step, step, okGRPC)
		}
		add(Case{ID: "R-5/" + id, Rule: "R-5", Title: "UNAVAILABLE with " + line, question: heeds, script: script, runs: runs, judge: judge})
	}
	pushback("pushback", "2000", 0, atLeast(2*time.Second))
	pushback("pushback-too-long", "100000", 0, judgeTooLong)
	pushback("pushback-stop", "-1", 0, judgeTooLong)
	pushback("pushback-rubbish", "soon", 0, judgeTooLong)
	pushback("pushback-zero", "0", 4, judgeZero)
	info := wire.GRPC(codeUnavailable, wire.RetryInfo(codeUnavailable, 2*time.Second))
	add(Case{ID: "R-5/retry-info", Rule: "R-5", Title: "UNAVAILABLE with a RetryInfo of 2s", question: heeds, script: steps(info, okGRPC), judge: atLeast(2 * time.Second)})
}

// http2Alone has a server speak HTTP/2, and nothing else.
func http2Alone(of func(*pki) *tls.Config) func(*pki) *tls.Config {
	return func(p *pki) *tls.Config {
		config := of(p).Clone()
		config.NextProtos = []string{"h2"}
		return config
	}
}
