package faulttable

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
)

// fault is one case: a request, what its server does, and what a reader of the
// page should know. The zero value is a GET to a server without a handler.
type fault struct {
	name string
	why  string // for the page; names the rule where one decides

	// retried says that the standard asks for the retries although they came to
	// nothing here: more sends for the same result are then not worse.
	retried bool
	// forbidden says that the standard forbids what net/http did, so that forbear
	// may do less.
	forbidden bool
	// leaves says that the caller goes away. Either end is then as good, if it
	// comes at once.
	leaves bool
	// uncounted leaves out the bytes: how many leave depends on timing. endless
	// leaves out the figures of net/http, which go on until the caller gives up.
	uncounted, endless bool
	// undialed leaves out the connections: whether net/http had begun to dial when
	// its re-send was stopped depends on timing.
	undialed bool

	// method is GET by default, POST with a body. key adds an idempotency key.
	method string
	key    bool
	body   func() io.Reader
	header http.Header
	// want is the body of a good response, "fine" by default; received that of the
	// request at the server, "payload" by default where there is a body.
	want, received string

	serve  handler   // HTTP/1.1
	stream streaming // HTTP/2 instead
	secure bool      // TLS for HTTP/1.1
	// proxied makes the site a proxy, whose tunnels lead to itself over TLS.
	proxied bool
	// patience is when the caller gives up waiting, 30 s by default.
	patience time.Duration

	policy func(*forbear.Policy)
	base   func(*caller)          // adjusts the transport before it is used
	use    func(*caller) response // instead of one request
}

// host is the name that the test certificates of net/http/httptest are made for.
const host = "example.com"

const key = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"

// caller is the client's side of one run of a case.
type caller struct {
	*testing.T
	*fault
	site   *site
	base   *http.Transport
	client *http.Client
	plain  bool
	ctx    context.Context
	dials  atomic.Int64
	dialed atomic.Int64 // successfully
	bodies []*closable  // of the requests, as the caller made them
	dial   func(ctx context.Context, number int64, network, address string) (net.Conn, error)
}

// policy is what forbear runs under where the case does not say otherwise: waits
// that slow nothing down, attempts that a busy machine does not time out, a
// budget that never refuses and no breaker.
func policy() forbear.Policy {
	p := forbear.Policy{
		Backoff:    forbear.Backoff{Base: time.Millisecond, Cap: 2 * time.Millisecond},
		PerAttempt: 10 * time.Second,
	}
	p.Breaker.Disabled = true
	return p
}

// brief is for the cases about time: attempts end long before the pauses that
// healthy servers and callers make in them, and bodies may stand still for much
// longer than those.
const (
	perAttempt = time.Second
	pausing    = 2500 * time.Millisecond
	bodyIdle   = 10 * time.Second
	// patient is when a caller gives up who waits for what never comes.
	patient = 10 * time.Second
)

func brief(p *forbear.Policy) { p.PerAttempt, p.BodyIdle = perAttempt, bodyIdle }

// errImpatient is the end of a call that its caller has stopped waiting for.
var errImpatient = errors.New("the caller has waited long enough")

// run makes the case's calls through plain net/http or through forbear.
func (f *fault) run(t *testing.T, plain bool) outcome {
	s := newSite(t, f)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	patience := f.patience
	if patience == 0 {
		patience = 30 * time.Second
	}
	// No deadline: forbear would send it along and fit its retries into it.
	defer time.AfterFunc(patience, func() { cancel(errImpatient) }).Stop()
	c := &caller{T: t, fault: f, site: s, plain: plain, ctx: ctx}
	c.dial = c.toSite
	c.base = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := c.dial(ctx, c.dials.Add(1), network, address)
			if err == nil {
				c.dialed.Add(1)
			}
			return conn, err
		},
		TLSClientConfig:     s.trusted(),
		ForceAttemptHTTP2:   f.stream != nil,
		MaxIdleConnsPerHost: 16,
	}
	defer c.base.CloseIdleConnections()
	if f.base != nil {
		f.base(c)
	}
	s.start(t)
	c.client = &http.Client{Transport: c.base}
	if !plain {
		c.client.Transport = httpretry.NewTransport(c.base, f.retryer(t))
	}
	use := f.use
	if use == nil {
		use = (*caller).once
	}
	r := use(c)
	r.hung = r.hung || context.Cause(ctx) == errImpatient
	left := c.leftovers()
	o := c.outcome(r)
	if left != "" {
		o.grade, o.result = harmful, o.result+", **"+left+"**"
	}
	return o
}

func (f *fault) retryer(t *testing.T) *forbear.Retryer {
	p := policy()
	if f.policy != nil {
		f.policy(&p)
	}
	r, err := forbear.New("dependency", p, forbear.WithoutLog(), forbear.WithBudget(budget.NewTokenBucket(1000, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// toSite dials the site, whatever name the request has.
func (c *caller) toSite(ctx context.Context, _ int64, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", c.site.address())
}

// request makes the case's request for a path.
func (c *caller) request(path string) *http.Request {
	scheme, method := "http", c.method
	if c.secure || c.stream != nil {
		scheme = "https"
	}
	var body io.Reader
	if c.body != nil {
		body = c.body()
		if method == "" {
			method = http.MethodPost
		}
	}
	req, err := http.NewRequestWithContext(c.ctx, method, scheme+"://"+host+path, body)
	if err != nil {
		c.Fatal(err)
	}
	if req.Body != nil {
		b := &closable{ReadCloser: req.Body}
		req.Body, c.bodies = b, append(c.bodies, b)
	}
	maps.Copy(req.Header, c.header)
	if c.key {
		req.Header.Set(httpretry.HeaderKey, key)
	}
	return req
}

// response is what one call gave the caller.
type response struct {
	err     error // of the call
	status  int
	body    string
	read    error // of the body
	note    string
	flawed  bool // less than what was asked for, by the case's own measure
	hung    bool
	trouble any // of a panic
}

// once makes one call and reads its response.
func (c *caller) once() response { return c.do(c.request("/")) }

func (c *caller) do(req *http.Request) response {
	resp, err := c.client.Do(req)
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return response{status: resp.StatusCode, body: string(body), read: err}
}

// text is a body that net/http can rewind; streamed is one that it cannot.
func text(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

func payload() io.Reader  { return strings.NewReader("payload") }
func streamed() io.Reader { return io.MultiReader(strings.NewReader("pay"), strings.NewReader("load")) }
