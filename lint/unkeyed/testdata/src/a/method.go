package a

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// The method travels: through helpers, fields, builders, captured variables.

type job struct {
	verb string
	path string
}

func (c *client) run(j job) error { return c.send(j.verb, j.path) }

func fieldOfOwnType(c *client) (err error) {
	j := job{verb: http.MethodPatch, path: "/jobs/1"}
	for range 3 { // want `FB1030: retries PATCH by a.client.run`
		if err = c.run(j); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func fieldThatReads(c *client) (err error) {
	j := job{verb: http.MethodGet, path: "/jobs/1"}
	for range 3 {
		if err = c.run(j); err == nil {
			return nil
		}
		wait()
	}
	return err
}

type call struct {
	method string
	target string
	body   string
}

func newCall(method, target string) *call { return &call{method: method, target: target} }

func (c *client) Post(target string) *call { return newCall(http.MethodPost, c.base+target) }
func (c *client) Put(target string) *call  { return newCall(http.MethodPut, c.base+target) }

func (r *call) With(body string) *call { r.body = body; return r }

func (r *call) Do(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, r.method, r.target, strings.NewReader(r.body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func fluent(ctx context.Context, c *client) (err error) {
	for range 3 { // want `FB1030: retries POST by a.call.Do`
		if err = c.Post("/notes").With("hello").Do(ctx); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func fluentPut(ctx context.Context, c *client) (err error) {
	for range 3 {
		if err = c.Put("/notes/1").With("hello").Do(ctx); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func setLater(ctx context.Context) (err error) {
	r := &call{target: "http://example.com"}
	r.method = "POST"
	for range 3 { // want `FB1030: retries POST by a.call.Do`
		if err = r.Do(ctx); err == nil {
			return nil
		}
		wait()
	}
	return err
}

// A client with a method for each verb, which end in one.

func (c *client) do(ctx context.Context, method, path string) error {
	u, err := url.JoinPath(c.base, path)
	if err != nil {
		return err
	}
	return newCall(strings.ToUpper(method), u).Do(ctx)
}

func (c *client) insert(ctx context.Context, path string) error { return c.do(ctx, "post", path) }
func (c *client) replace(ctx context.Context, path string) error {
	return c.do(ctx, "put", path)
}

func typed(ctx context.Context, c *client) (err error) {
	for range 3 { // want `FB1030: retries POST by a.client.insert`
		if err = c.insert(ctx, "/rows"); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func typedPut(ctx context.Context, c *client) (err error) {
	for range 3 {
		if err = c.replace(ctx, "/rows/1"); err == nil {
			return nil
		}
		wait()
	}
	return err
}

// A request that was built before, and is captured.

func captured(c *client, body string) error {
	req, err := http.NewRequest("POST", c.base, strings.NewReader(body))
	if err != nil {
		return err
	}
	return retry(3, func() error { // want `FB1030: retries POST through a.retry`
		resp, err := c.http.Do(req.Clone(req.Context()))
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func capturedRead(c *client) error {
	req, err := http.NewRequest("GET", c.base, nil)
	if err != nil {
		return err
	}
	return retry(3, func() error {
		resp, err := c.http.Do(req.Clone(req.Context()))
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

type pending struct {
	req *http.Request
	hc  *http.Client
}

func newPending(req *http.Request) *pending { return &pending{req: req, hc: http.DefaultClient} }

func (p *pending) attempt() error {
	resp, err := p.hc.Do(p.req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func heldInField(body string) (err error) {
	req, err := http.NewRequest("POST", "http://example.com", strings.NewReader(body))
	if err != nil {
		return err
	}
	p := newPending(req)
	for range 3 { // want `FB1030: retries POST by a.pending.attempt`
		if err = p.attempt(); err == nil {
			return nil
		}
		wait()
	}
	return err
}

// The caller decides, several helpers away.

func (c *client) again(ctx context.Context, r *call) (err error) {
	for range 3 { // want `FB1030: retries whatever method it is given, POST by order too`
		if err = r.Do(ctx); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func (c *client) perform(ctx context.Context, method, path string) error {
	return c.again(ctx, newCall(method, c.base+path))
}

func order(ctx context.Context, c *client) error { return c.perform(ctx, "POST", "/orders") }
func show(ctx context.Context, c *client) error  { return c.perform(ctx, "GET", "/orders/1") }

// onlyReads is never given a write.
func (c *client) onlyReads(ctx context.Context, method, path string) (err error) {
	for range 3 {
		if err = c.do(ctx, method, path); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func head(ctx context.Context, c *client) error { return c.onlyReads(ctx, "HEAD", "/") }

// throughCallback hands on a method that its caller chooses, to a helper of the package.
func (c *client) throughCallback(method string) error {
	return retry(3, func() error { return c.send(method, "/events") }) // want `FB1030: retries every request through a.retry, whatever its method`
}

func touch(c *client) error { return c.throughCallback("PATCH") }

// A helper that is given what it runs, around the write.

type breaker struct{ open bool }

func (b *breaker) run(f func() error) error {
	if b.open {
		return errors.New("open")
	}
	return f()
}

func inBreaker(c *client, b *breaker) (err error) {
	for range 3 { // want `FB1030: retries POST by a.breaker.run`
		err = b.run(func() error { return c.create(nil) })
		if err == nil {
			return nil
		}
		wait()
	}
	return err
}

// An interface that just one type becomes.

type sender interface{ deliver(string) error }

type hook struct{ c *client }

func (h hook) deliver(text string) error { return h.c.create([]byte(text)) }

type bridge struct{ out sender }

func newBridge(c *client) *bridge { return &bridge{out: hook{c}} }

func (b *bridge) forward(text string) (err error) {
	for range 3 { // want `FB1030: retries POST by a.sender.deliver`
		if err = b.out.deliver(text); err == nil {
			return nil
		}
		wait()
	}
	return err
}

// A method that is set by a call of its own.

func (r *call) use(verb string) { r.method = verb }

func setByCall(ctx context.Context) (err error) {
	r := &call{target: "http://example.com"}
	r.use("PATCH")
	for range 3 { // want `FB1030: retries PATCH by a.call.Do`
		if err = r.Do(ctx); err == nil {
			return nil
		}
		wait()
	}
	return err
}

// A body that can be sent again does not make the request harmless.

type rewinding struct{ base http.RoundTripper }

func NewRewinding(base http.RoundTripper) http.RoundTripper { return rewinding{base} }

func (t rewinding) RoundTrip(req *http.Request) (*http.Response, error) {
	again := req.Method == http.MethodGet || req.GetBody != nil
	for retries := 0; ; retries++ { // want `FB1030: retries every request, whatever its method`
		resp, err := t.base.RoundTrip(req)
		if err == nil || !again || retries > 3 {
			return resp, err
		}
		wait()
	}
}
