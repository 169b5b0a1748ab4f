package faulttable

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
)

// upload is larger than what sockets and forbear buffer.
const upload = 8 << 20

// timing are faults, and healthy exchanges, that take longer than one attempt may
// take for its headers.
var timing = []fault{
	{name: "headers too late, once", serve: once(isSilent), policy: func(p *forbear.Policy) { p.PerAttempt = 2 * perAttempt }, patience: patient, why: "R-4"},
	{name: "no response, for ever", serve: isSilent, policy: brief, patience: patient, retried: true, why: "INTG-STD-035"},
	{name: "no response, for ever, POST", body: payload, serve: isSilent, policy: brief, patience: patient, why: "R-6: sent once, and bounded"},
	{name: "long poll", serve: late, policy: brief, forbidden: true, why: "INTG-STD-035: an attempt is bounded; set per_attempt for a long poll"},
	{name: "long poll, per_attempt set for it", serve: late},
	{name: "slow upload to a healthy server, PUT", method: http.MethodPut, body: slowBody, received: "aaaa", serve: ok, policy: brief, why: "per_attempt is the server's time"},
	{name: "slow upload to a healthy server, POST", body: slowBody, received: "aaaa", serve: ok, policy: brief, why: "as above"},
	{name: "upload that stalls, then goes on", body: stalling(pausing), received: "payload", serve: ok, policy: brief, why: "as above: the caller's own stall"},
	{name: "upload that fails", body: broken, serve: ok, uncounted: true, why: "the caller's own failure is no fault of the server"},
	{name: "upload that fails, PUT", method: http.MethodPut, body: broken, serve: ok, uncounted: true, why: "as above"},
	{name: "413 in the middle of an upload", body: text(strings.Repeat("a", upload)), serve: refusesEarly(413), uncounted: true, why: "R-4: terminal"},
	{name: "200 in the middle of an upload", body: text(strings.Repeat("a", upload)), want: "OK", serve: refusesEarly(200), uncounted: true},
	{
		name: "503 in the middle of an upload, once, PUT", method: http.MethodPut, body: text(strings.Repeat("a", upload)), received: strings.Repeat("a", upload),
		serve: once(refusesEarly(503)), uncounted: true, why: "R-4",
	},
	{name: "417 to Expect: 100-continue", body: payload, header: http.Header{"Expect": {"100-continue"}}, serve: refusesEarly(417), base: expects, why: "the body stays here"},
	{name: "Expect: 100-continue", body: payload, header: http.Header{"Expect": {"100-continue"}}, serve: continues, base: expects},
	{
		name: "503 to Expect: 100-continue, once, PUT of a streamed body", method: http.MethodPut, body: streamed, header: http.Header{"Expect": {"100-continue"}},
		serve: then(refusesEarly(503), continues), base: expects, why: "R-4; the body was not touched",
	},
	{
		name: "slow reader of a small body", serve: sends(sized(512 << 10)), policy: brief, want: strings.Repeat("a", 512<<10), use: readsSlowly(pausing),
		why: "per_attempt ends with the headers",
	},
	{name: "events with long pauses", serve: events, policy: brief, want: "aaa", why: "a body has body_idle"},
	{name: "large download, slower than per_attempt", serve: downloads, policy: brief, want: strings.Repeat("a", 8<<20), why: "as above"},
	{name: "body that stalls for ever", serve: halfThenSilent, policy: stallsSoon, patience: patient, why: "body_idle"},
	{name: "503 once, whose body stalls", serve: once(stalled503), policy: brief, patience: patient, why: "R-4; draining is bounded"},
	{name: "server that stops reading an upload", method: http.MethodPut, body: text(strings.Repeat("a", upload)), serve: ignores, policy: stallsSoon, patience: 2 * patient, uncounted: true, retried: true, why: "body_idle"},
	{name: "TLS handshake stalls, once", secure: true, serve: ok, base: firstConnectionSilent, policy: func(p *forbear.Policy) { p.PerAttempt = 2 * perAttempt }, patience: patient, why: "R-4"},
	{name: "caller leaves while the server is silent", serve: isSilent, use: leaving(nil), leaves: true, why: "canceled is terminal"},
	{name: "caller leaves in the middle of a body", serve: halfThenSilent, use: leaving(nil), leaves: true},
	{name: "caller leaves during a wait", serve: says(503, "Retry-After: 12"), use: leaving(nil), leaves: true, why: "R-5 asks for the wait; it ends with the caller"},
	{name: "Request.Cancel while the server is silent", serve: isSilent, use: leaving(oldCancel), leaves: true},
	{name: "Request.Cancel during a wait", serve: says(503, "Retry-After: 12"), use: leaving(oldCancel), leaves: true, why: "as with a context"},
	{name: "Client.Timeout, server silent", serve: isSilent, policy: brief, use: leaving(clientTimeout), leaves: true},
	{name: "Client.Timeout shorter than the wait", serve: says(503, "Retry-After: 20"), use: leaving(clientTimeout), why: "R-5: does not fit, at once"},
}

func stallsSoon(p *forbear.Policy) { p.PerAttempt, p.BodyIdle = perAttempt, perAttempt }

// late responds after longer than an attempt may take.
func late(c *conn, req *http.Request, n int) bool {
	if !c.take(req) {
		return false
	}
	gone := make(chan struct{})
	go func() { defer close(gone); c.abandoned() }()
	select {
	case <-gone:
		return false
	case <-time.NewTimer(pausing).C:
	}
	c.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\n", fine)
	_ = c.Close()
	<-gone
	return false
}

// expects leaves the server all the time it needs for a 100.
func expects(c *caller) { c.base.ExpectContinueTimeout = 30 * time.Second }

func continues(c *conn, req *http.Request, n int) bool {
	return c.write("HTTP/1.1 100 Continue\r\n\r\n") && ok(c, req, n)
}

// refusesEarly responds before it has read the body, and then lets the client
// stop in its own time: a reset could overtake the response.
func refusesEarly(status int) handler {
	text := http.StatusText(status)
	return func(c *conn, _ *http.Request, _ int) bool {
		c.write("HTTP/1.1 ", count(status), " ", text, "\r\nConnection: close\r\nContent-Length: ", count(len(text)), "\r\n\r\n", text)
		return c.abandoned()
	}
}

// slowBody takes longer than an attempt, but never stands still for as long.
func slowBody() io.Reader { return &paced{chunk: "a", left: 4, every: pausing / 4} }

// stalling is the payload with a pause in the middle.
func stalling(d time.Duration) func() io.Reader {
	return func() io.Reader {
		return io.MultiReader(strings.NewReader("pay"), &paced{chunk: "l", left: 1, every: d}, strings.NewReader("oad"))
	}
}

// broken fails when enough of it was read for the headers to be on the wire.
func broken() io.Reader {
	return io.MultiReader(strings.NewReader(strings.Repeat("a", 64<<10)), failingReader{})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errCaller }

// paced is a body whose chunks come one by one.
type paced struct {
	chunk string
	left  int
	every time.Duration
}

func (p *paced) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	p.left--
	pause(p.every)
	return copy(b, p.chunk), nil
}

// sized is a good response with a body of a declared length.
func sized(n int) string {
	return "HTTP/1.1 200 OK\r\nContent-Length: " + count(n) + "\r\n\r\n" + strings.Repeat("a", n)
}

// events sends chunks with pauses that are longer than an attempt.
func events(c *conn, req *http.Request, _ int) bool {
	if !c.take(req) || !c.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n") {
		return false
	}
	for range 3 {
		pause(pausing)
		if !c.write(chunkOf("a")) {
			return false
		}
	}
	return c.write("0\r\n\r\n")
}

// downloads sends a large body in longer than an attempt, without long pauses.
func downloads(c *conn, req *http.Request, _ int) bool {
	whole := sized(8 << 20)
	if !c.take(req) {
		return false
	}
	const parts = 16
	for i := range parts {
		if !c.write(whole[i*len(whole)/parts : (i+1)*len(whole)/parts]) {
			return false
		}
		pause(pausing / parts)
	}
	return true
}

func halfThenSilent(c *conn, req *http.Request, _ int) bool {
	return c.take(req) && c.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") && c.abandoned()
}

func stalled503(c *conn, req *http.Request, _ int) bool {
	return c.take(req) && c.write("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100\r\n\r\nhalf") && c.abandoned()
}

// ignores reads nothing of the body, and so never learns that the client has hung
// up.
func ignores(c *conn, _ *http.Request, _ int) bool {
	c.s.disown(c.Conn)
	<-c.s.ended
	return false
}

// firstConnectionSilent never responds on the first connection, not even to TLS.
func firstConnectionSilent(c *caller) {
	c.site.onConnect = func(c net.Conn, n int) bool {
		if n == 1 {
			_, _ = io.Copy(io.Discard, c)
		}
		return n > 1
	}
}

// readsSlowly waits before it reads the body.
func readsSlowly(d time.Duration) func(*caller) response {
	return func(c *caller) response {
		resp, err := c.client.Do(c.request("/"))
		if err != nil {
			return response{err: err}
		}
		defer resp.Body.Close()
		pause(d)
		body, err := io.ReadAll(resp.Body)
		return response{status: resp.StatusCode, body: string(body), read: err}
	}
}

// departure is how a caller leaves a call that is under way.
type departure func(c *caller, req *http.Request)

// leaving goes away in the middle of the call. A call that does not end soon
// hangs.
func leaving(how departure) func(*caller) response {
	return func(c *caller) response {
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		req := c.request("/").WithContext(ctx)
		if how != nil {
			how(c, req)
		} else {
			defer time.AfterFunc(pausing/2, cancel).Stop()
		}
		began := time.Now()
		r := c.do(req)
		r.hung = time.Since(began) > patient
		return r
	}
}

// clientTimeout ends within the first attempt.
func clientTimeout(c *caller, _ *http.Request) { c.client.Timeout = perAttempt * 9 / 10 }

// oldCancel is how callers left before there were contexts.
func oldCancel(c *caller, req *http.Request) {
	gone := make(chan struct{})
	//lint:ignore SA1019 older callers still use it
	req.Cancel = gone
	timer := time.AfterFunc(pausing/2, func() { close(gone) })
	c.Cleanup(func() { timer.Stop() })
}
