// Package restarts begins again whatever its operation returned.
package restarts

import (
	"context"
	"errors"
	"net/http"
	"time"
)

var errRefused = errors.New("refused")

// listen reads a stream until it fails.
func listen(c *http.Client, url string, got chan<- byte) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("no stream")
	}
	return read(resp, got)
}

// listenFinal tells final responses from others.
func listenFinal(c *http.Client, url string, got chan<- byte) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return errors.New("down")
	case resp.StatusCode != http.StatusOK:
		return errRefused
	}
	return read(resp, got)
}

func read(resp *http.Response, got chan<- byte) error {
	var buf [1]byte
	for {
		if _, err := resp.Body.Read(buf[:]); err != nil {
			return err
		}
		got <- buf[0]
	}
}

func restarts(ctx context.Context, c *http.Client, url string, got chan<- byte) {
	for { // want `FB1035: retries restarts.listen on status 400, 401, 403, 404, 409, 422`
		_ = listen(c, url, got)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

func restartsUnlessRefused(ctx context.Context, c *http.Client, url string, got chan<- byte) {
	for {
		if err := listenFinal(c, url, got); errors.Is(err, errRefused) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}
