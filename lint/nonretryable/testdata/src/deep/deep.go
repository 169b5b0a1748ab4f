// Package deep has the status far from the loop.
package deep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

var errAgain = errors.New("again")

func wait() { time.Sleep(rand.N(time.Second)) }

func feed(c *http.Client, url string) (*http.Response, error) {
	resp, err := c.Get(url)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp, nil
}

// What is handed to an operation that carries it out decides how that ends.

// span is what a package has of its own for that.
func span(ctx context.Context, name string, run func(context.Context) error) error {
	if err := run(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func traced(ctx context.Context, name string, run func(context.Context) error) error {
	return span(ctx, name, run)
}

func inSpan(ctx context.Context, c *http.Client, url string) (err error) {
	for range 3 { // want `FB1035: retries deep.traced on status 400, 401, 403, 404, 409, 422`
		err = traced(ctx, "feed", func(context.Context) error {
			_, err := feed(c, url)
			return err
		})
		if err == nil {
			return nil
		}
		wait()
	}
	return err
}

// tried does not tell what became of what it ran.
func tried(run func() error) error {
	if run() != nil {
		return nil
	}
	return errors.New("done already")
}

func inTried(c *http.Client, url string) (err error) {
	for range 3 {
		err = tried(func() error {
			_, err := feed(c, url)
			return err
		})
		if err == nil {
			return nil
		}
		wait()
	}
	return err
}

// The status becomes an error many calls below the loop.

type store struct{ c *http.Client }

func (s *store) check(resp *http.Response) error {
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func (s *store) do(req *http.Request) (*http.Response, error) {
	resp, err := s.c.Do(req)
	if err != nil {
		return nil, err
	}
	return resp, s.check(resp)
}

func (s *store) send(req *http.Request) (*http.Response, error) { return s.do(req) }
func (s *store) put(req *http.Request, body io.ReadCloser) error {
	req.Body = body
	_, err := s.send(req)
	return err
}

func (s *store) putAgain(req *http.Request, body func() io.ReadCloser) (err error) {
	for range 3 { // want `FB1035: retries deep.store.put on status 400, 401, 403, 404, 409, 422`
		if err = s.put(req, body()); err == nil {
			return nil
		}
		wait()
	}
	return err
}

// count fails for none of the statuses that it counts.
func (s *store) count(req *http.Request) error {
	resp, err := s.send(req)
	if resp != nil {
		fmt.Println(resp.StatusCode)
		return nil
	}
	return err
}

func (s *store) countAgain(req *http.Request) (err error) {
	for range 3 {
		if err = s.count(req); err == nil {
			return nil
		}
		wait()
	}
	return err
}

// What is asked ahead of each attempt knows nothing of the response.

type worker struct{ gone bool }

func (w *worker) stopped() bool { return w.gone }

func (w *worker) untilStopped(c *http.Client, url string, open func() bool) {
	for { // want `FB1035: retries deep.feed on status 400, 401, 403, 404, 409, 422`
		if !open() || w.stopped() {
			return
		}
		if _, err := feed(c, url); err == nil {
			return
		}
		wait()
	}
}
