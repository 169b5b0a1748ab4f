package policed

import (
	"context"
	"errors"
	"net/http"
	"time"
)

type maker struct{ base http.RoundTripper }

// request makes what is sent: who calls it chooses the method.
func (m *maker) request(ctx context.Context, method, url string) (*http.Request, error) {
	if url == "" {
		return nil, errors.New("no address")
	}
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return nil, err
	}
	return req.WithContext(ctx), nil
}

func (m *maker) create(ctx context.Context, url string) (resp *http.Response, err error) {
	for range 3 { // want `FB1030: retries POST by http.RoundTripper.RoundTrip`
		req, err := m.request(ctx, http.MethodPost, url)
		if err != nil {
			return nil, err
		}
		if resp, err = m.base.RoundTrip(req); err != nil || resp.StatusCode < 500 {
			return resp, err
		}
		resp.Body.Close()
		time.Sleep(time.Second)
	}
	return nil, err
}

// Call holds the request of whoever makes one, and an exported method sends it.
type Call struct {
	Base    http.RoundTripper
	Request *http.Request
}

func (c *Call) Execute() error { return c.send() }

func (c *Call) send() (err error) {
	for range 3 { // want `FB1030: retries every request, whatever its method`
		var resp *http.Response
		if resp, err = c.Base.RoundTrip(c.Request); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
	return err
}

// Each turn asks for another of a list.
type hops struct {
	base  http.RoundTripper
	paths []string
}

func (h *hops) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := h.base.RoundTrip(req)
	for index := 0; err != nil && index < len(h.paths)-1; {
		index++
		next := req.Clone(req.Context())
		next.URL.Path = h.paths[index]
		resp, err = h.base.RoundTrip(next)
	}
	return resp, err
}

// What prepares the call looks at the method, and what is prepared decides.
type Exchange struct {
	base  http.RoundTripper
	req   *http.Request
	times int
}

func (x *Exchange) Execute() error {
	x.prepare()
	return x.run()
}

func (x *Exchange) prepare() {
	if x.times = 3; x.req.Method == http.MethodPost {
		x.times = 1
	}
}

func (x *Exchange) run() (err error) {
	for range x.times {
		var resp *http.Response
		if resp, err = x.base.RoundTrip(x.req); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
	return err
}
