package probe

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/wire"
)

// healthy is the case that comes first: without it nothing can be judged.
const healthy = "healthy"

// outage is the case whose runs tell the number of retries and the law of their waits.
const outage = "R-2/outage"

// The groups of statuses.
const retryable, terminal = "statuses that are retried", "statuses that are not"

// cases returns all cases, in the order of the report.
func cases() (list []Case) {
	add := func(c Case) {
		if c.watch == 0 {
			c.watch = usualWatch
		}
		list = append(list, c)
	}
	add(Case{ID: healthy, Title: "a response of 200", script: steps(ok), judge: judgeHealthy})
	for _, code := range []int{408, 429, 500, 502, 503, 504} {
		add(Case{
			ID: fmt.Sprintf("R-4/%d/GET", code), Rule: "R-4", Title: fmt.Sprintf("%d to a GET", code), group: retryable, method: "GET",
			script: steps(wire.Status(code), ok), judge: mustAgain,
		})
	}
	for _, code := range []int{400, 403, 404, 409, 422, 425, 501} {
		add(Case{
			ID: fmt.Sprintf("R-4/%d/GET", code), Rule: "R-4", Title: fmt.Sprintf("%d to a GET", code), group: terminal, method: "GET",
			script: steps(wire.Status(code)), ends: 2, judge: mustNot,
		})
	}
	network := func(id, title string, step wire.Step, judge func(*known, []run) Verdict, watch time.Duration) {
		add(Case{ID: "R-4/" + id + "/GET", Rule: "R-4", Title: title, method: "GET", script: steps(step, ok), judge: judge, watch: watch})
	}
	network("reset", "the connection is reset before the response", wire.Reset, mustAgain, 0)
	network("reset-in-headers", "the connection is reset in the headers", wire.Write("HTTP/1.1 200 OK\r\nContent-Ty", wire.Reset), mustAgain, 0)
	network("closed", "the connection is closed before the response", wire.Close, mustAgain, 0)
	network("half-body", "half of the body comes, then the connection is closed", wire.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf", wire.Close), judgeHalf, 0)
	network("malformed", "the response is not HTTP", wire.Write("HELLO 200\r\n\r\n", wire.Close), told("after a response that is not HTTP"), 0)
	network("hang", "no response", wire.Hang, judgeHang, longWatch)
	add(Case{ID: "R-4/stale/GET", Rule: "R-4", Title: "the kept connection is closed under the next request", method: "GET", late: true, script: stale(wire.Status(http.StatusServiceUnavailable), ok), judge: judgeStale})
	add(Case{ID: "R-4/refused-stream/GET", Rule: "R-4", Title: "HTTP/2 refuses the stream", method: "GET", tls: trusted2, script: steps(wire.RefuseStream, ok), judge: judge2})
	add(Case{ID: "R-4/goaway/GET", Rule: "R-4", Title: "HTTP/2 says GOAWAY", method: "GET", tls: trusted2, script: steps(wire.GoAway, ok), judge: judge2})
	for _, c := range []struct {
		id, title string
		step      wire.Step
		watch     time.Duration
	}{
		{"503", "503 to a POST", wire.Status(http.StatusServiceUnavailable), 0},
		{"reset", "a reset before the response to a POST", wire.Reset, 0},
		{"hang", "no response to a POST", wire.Hang, longWatch},
	} {
		add(Case{ID: "R-6/" + c.id + "/POST", Rule: "R-6", Title: c.title, method: "POST", script: steps(c.step, ok), judge: judgePost, watch: c.watch})
	}
	add(Case{ID: "R-6/new-key/POST", Rule: "R-6", Title: "a new key for a new call", method: "POST", script: steps(ok), runs: 2, judge: judgeNewKey})
	add(Case{ID: "R-6/503/PUT", Rule: "R-6", Title: "503 to a PUT", method: "PUT", script: steps(wire.Status(http.StatusServiceUnavailable), ok), judge: judgePut})
	add(Case{ID: "R-9/401/GET", Rule: "R-9", Title: "401 to a GET", method: "GET", script: steps(wire.Status(http.StatusUnauthorized)), ends: 3, judge: judge401})
	add(Case{ID: "R-9/redirect/GET", Rule: "R-9", Title: "a redirect to another host", method: "GET", script: elsewhere, judge: judgeRedirect})
	for _, c := range certificates {
		add(Case{ID: c.id, Rule: "R-9", Title: c.title, tls: c.of, script: steps(ok), judge: c.judge})
	}
	add(Case{ID: "R-4/refused/GET", Rule: "R-4", Title: "the next connections are refused", method: "GET", late: true, script: refused(wire.Status(http.StatusServiceUnavailable, "connection: close"), ok), watch: longWatch, runs: 4, judge: judgeRefused})
	outages(add, overHTTP, wire.Status(http.StatusServiceUnavailable), "GET")
	for _, code := range []int{429, 503} {
		add(Case{ID: fmt.Sprintf("R-5/seconds/%d", code), Rule: "R-5", Title: fmt.Sprintf("%d with Retry-After: 2", code), question: heeds, method: "GET", script: steps(wire.Status(code, "retry-after: 2"), ok), judge: atLeast(2 * time.Second)})
	}
	add(Case{ID: "R-5/date", Rule: "R-5", Title: "503 with a date in 3 seconds", question: heeds, method: "GET", script: date, judge: atLeast(2 * time.Second)})
	add(Case{ID: "R-5/too-long", Rule: "R-5", Title: "503 with Retry-After: 100", question: heeds, method: "GET", script: steps(wire.Status(503, "retry-after: 100"), ok), judge: judgeTooLong})
	add(Case{ID: "R-5/huge", Rule: "R-5", Title: "503 with Retry-After: 99999999999", question: heeds, method: "GET", script: steps(wire.Status(503, "retry-after: 99999999999"), ok), judge: judgeTooLong})
	add(Case{ID: "R-5/zero", Rule: "R-5", Title: "503 with Retry-After: 0", question: heeds, method: "GET", script: steps(wire.Status(503, "retry-after: 0"), wire.Status(503, "retry-after: 0"), ok), runs: 4, judge: judgeFloor})
	add(Case{ID: "R-5/rubbish", Rule: "R-5", Title: "503 with Retry-After: soon", question: heeds, method: "GET", script: steps(wire.Status(503, "retry-after: soon"), wire.Status(503, "retry-after: soon"), ok), runs: 4, judge: judgeFloor})
	add(Case{ID: "layers", Title: "a server that calls with the same client", question: heeds, method: "GET", script: layered(wire.Status(http.StatusServiceUnavailable)), second: wire.Status(http.StatusServiceUnavailable), watch: longWatch, judge: judgeLayers})
	add(Case{ID: "headers", Title: "headers that tell the attempt", question: heeds, of: outage, judge: judgeHeaders})
	return list
}

// outages adds the cases of a server that fails all the time.
func outages(add func(Case), p *protocol, failure wire.Step, method string) {
	all := p.failure + " to everything: "
	add(Case{ID: outage, Rule: "R-2", Title: all + "how often it is sent", question: often, method: method, script: steps(failure), watch: longWatch, runs: sequences, judge: judgeCount})
	add(Case{ID: "R-3/total", Rule: "R-3", Title: all + "how long a call takes", question: often, of: outage, judge: judgeTotal})
	add(Case{ID: "R-3/attempt", Rule: "R-3", Title: "no response: how long an attempt takes", question: often, of: p.hang, judge: judgeAttempt})
	add(Case{ID: "R-3/end", Rule: "R-3", Title: "the client is told to end", question: often, method: method, script: steps(failure), ends: 1, listens: 4 * time.Second, judge: judgeEnd})
	add(Case{ID: "R-7/outage", Rule: "R-7", Title: all + "requests for a call", question: often, of: outage, judge: judgeMultiplier})
	add(Case{ID: "R-1/law", Rule: "R-1", Title: "the law of the waits", question: between, of: outage, judge: judgeLaw})
}

// certificates are the cases of TLS.
var certificates = []struct {
	id, title string
	of        func(*pki) *tls.Config
	judge     func(*known, []run) Verdict
}{
	{"R-9/trusted", "a certificate of an authority that is trusted", func(p *pki) *tls.Config { return p.good }, judgeTrusted},
	{"R-9/expired", "an expired certificate", func(p *pki) *tls.Config { return p.expired }, judgeCertificate},
	{"R-9/wrong-name", "a certificate for another name", func(p *pki) *tls.Config { return p.wrongName }, judgeCertificate},
	{"R-9/unknown", "a certificate of an unknown authority", func(p *pki) *tls.Config { return p.foreign }, judgeCertificate},
}

func trusted2(p *pki) *tls.Config { return p.h2 }

// refused is a failure behind which the port is closed for longer than the first wait.
func refused(failure, healthy wire.Step) func(*place) wire.Script {
	return func(at *place) wire.Script {
		return steps(wire.RefuseFor(at.known.closed(), failure), healthy)(at)
	}
}

// elsewhere redirects to the second server, by another name of this machine.
func elsewhere(at *place) wire.Script {
	to := strings.Replace(at.beyond, "127.0.0.1", "localhost", 1)
	return func(*wire.Arrival) wire.Step { return wire.Status(http.StatusFound, "location: "+to) }
}

// layered is a server that makes a call of its own for each request, with the same client,
// to the second server, and passes its failure on.
func layered(failure wire.Step) func(*place) wire.Script {
	return func(at *place) wire.Script { return func(*wire.Arrival) wire.Step { return calls(at, failure) } }
}

// calls makes a call of the client to the second server, and then fails.
func calls(at *place, failure wire.Step) wire.Step {
	return func(x *wire.Exchange) bool {
		cmd := at.client.command(at.beyond, at.method, at.body)
		if cmd.Start() == nil {
			over := make(chan error, 1)
			go func() { over <- cmd.Wait() }()
			select {
			case <-over:
			case <-x.Over():
				endAll(cmd)
				<-over
			}
		}
		return failure(x)
	}
}

// stale closes the connection of the first response under the next request on it.
func stale(failure, healthy wire.Step) func(*place) wire.Script {
	return func(*place) wire.Script {
		return func(a *wire.Arrival) wire.Step {
			switch {
			case a.Number == 1:
				return failure
			case a.Conn == 1:
				return wire.Close
			}
			return healthy
		}
	}
}

// date says in a date when to come again: in 2 to 3 seconds, since dates have no fractions.
func date(*place) wire.Script {
	return func(a *wire.Arrival) wire.Step {
		if a.Number > 1 {
			return ok
		}
		return wire.Status(http.StatusServiceUnavailable, "retry-after: "+time.Now().UTC().Add(3*time.Second).Format(http.TimeFormat))
	}
}
