package asked

import (
	"bytes"
	"math/rand"
	"net/http"
	"time"
)

// A call is a request of the package's own, which its users make.
type call struct {
	method, url string
	body        []byte
}

func NewCall(method, url string, body []byte) *call { return &call{method, url, body} }

type client struct {
	http *http.Client
	ask  interface {
		more(resp *http.Response, err error) bool
	}
}

func pause(i int) { time.Sleep(time.Duration(rand.Int63n(int64(time.Second) << i))) }

// Handle gives each request its body.
func (c *client) Handle(in *call) (resp *http.Response, err error) {
	for i := range 3 { // want `FB1030: retries every request, whatever its method`
		var req *http.Request
		if req, err = http.NewRequest(in.method, in.url, bytes.NewReader(in.body)); err != nil {
			return nil, err
		}
		if resp, err = c.http.Do(req); err == nil {
			return resp, nil
		}
		pause(i)
	}
	return resp, err
}

// HandleBare sends none: it may be used for reads alone.
func (c *client) HandleBare(in *call) (resp *http.Response, err error) {
	for i := range 3 {
		var req *http.Request
		if req, err = http.NewRequest(in.method, in.url, http.NoBody); err != nil {
			return nil, err
		}
		if resp, err = c.http.Do(req); err == nil {
			return resp, nil
		}
		pause(i)
	}
	return resp, err
}

// HandleQuery reads by its name.
func (c *client) HandleQuery(in *call) (resp *http.Response, err error) {
	for i := range 3 {
		var req *http.Request
		if req, err = http.NewRequest(in.method, in.url, bytes.NewReader(in.body)); err != nil {
			return nil, err
		}
		if resp, err = c.http.Do(req); err == nil {
			return resp, nil
		}
		pause(i)
	}
	return resp, err
}

// HandleIf asks a policy that cannot be read.
func (c *client) HandleIf(in *call) (resp *http.Response, err error) {
	for i := range 3 {
		var req *http.Request
		if req, err = http.NewRequest(in.method, in.url, bytes.NewReader(in.body)); err != nil {
			return nil, err
		}
		if resp, err = c.http.Do(req); err == nil || !c.ask.more(resp, err) {
			return resp, err
		}
		pause(i)
	}
	return resp, err
}
