// Package server holds waits that a server may name, and that grow without chance
// where it does not.
package server

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

func hintOrLinear(ctx context.Context, url string) (err error) {
	for n := range 4 { // want `FB1002: retries http.Get on failure with a growing wait that has no jitter`
		var resp *http.Response
		resp, err = http.Get(url)
		if err == nil && resp.StatusCode < 500 {
			return resp.Body.Close()
		}
		pause := time.Duration(n+1) * 2 * time.Second
		if err == nil {
			if s, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil {
				pause = time.Duration(s) * time.Second
			}
			resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return err
}

// settings choose a strategy, none of which has jitter.
type settings struct {
	strategy string
	period   time.Duration
	limit    int
}

func (s settings) pause(n int) time.Duration {
	switch s.strategy {
	case "linear":
		return s.period * time.Duration(n)
	case "doubling":
		return s.period << n
	}
	return s.period
}

// backoff reports whether there is another attempt, after a pause.
func (s settings) backoff(ctx context.Context, n int) bool {
	if n > s.limit {
		return false
	}
	t := time.NewTicker(s.pause(n))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func byStrategy(ctx context.Context, url string, s settings) (err error) {
	for n := 1; ; n++ { // want `FB1002: retries http.Get on failure with a growing wait that has no jitter`
		var resp *http.Response
		if resp, err = http.Get(url); err == nil {
			return resp.Body.Close()
		}
		if !s.backoff(ctx, n) {
			return err
		}
	}
}
