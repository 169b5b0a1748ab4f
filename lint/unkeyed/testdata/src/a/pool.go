package a

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

type node struct{ url *url.URL }

type nodes struct{ list []*node }

// Next yields the next node that is alive.
func (n *nodes) Next() (*node, error) {
	if len(n.list) == 0 {
		return nil, errors.New("no node is alive")
	}
	return n.list[0], nil
}

type Pooled struct {
	nodes         nodes
	base          http.RoundTripper
	retryOnStatus []int
	most          int
}

func (p *Pooled) attempt(req *http.Request, n *node) (*http.Response, error) {
	req.URL.Host = n.url.Host
	return p.base.RoundTrip(req)
}

// Perform sends the same request by another node, as a flag says that one failure
// or another has set.
func (p *Pooled) Perform(req *http.Request) (resp *http.Response, err error) {
	for i := 0; i <= p.most; i++ { // want `FB1030: retries every request, whatever its method`
		if i > 0 {
			req = req.Clone(req.Context())
		}
		retry, drained := false, false
		n, nextErr := p.nodes.Next()
		if nextErr != nil {
			return nil, nextErr
		}
		if resp, err = p.attempt(req, n); err != nil {
			if errors.Is(err, io.EOF) {
				retry = true
			}
			if resp == nil && errors.Is(err, io.ErrUnexpectedEOF) {
				retry = true
			}
		} else if p.most > 5 {
			drained = true
		}
		if resp != nil {
			for _, code := range p.retryOnStatus {
				if resp.StatusCode == code {
					retry, drained = true, true
				}
			}
		}
		if !retry {
			break
		}
		if drained && resp != nil {
			resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
	return resp, err
}

type queue struct{ items []*http.Request }

func (q *queue) Next() *http.Request { return q.items[0] }

// flush sends another request after a failure.
func (p *Pooled) flush(q *queue) error {
	for i := 0; i <= p.most; i++ {
		n, err := p.nodes.Next()
		if err != nil {
			return err
		}
		resp, err := p.attempt(q.Next(), n)
		if err == nil {
			return resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
	return nil
}
