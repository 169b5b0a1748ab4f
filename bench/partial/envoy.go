package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// envoy is a model of Envoy's retries with retry_on 5xx, num_retries 3 and a
// retry budget as it comes: retries under way, their wait included, are fewer
// than 20 % of all that is under way, or than three. No outlier detection.
type envoy struct {
	mu              sync.Mutex
	active, retries int
}

const (
	envoyRetries = 3
	envoyPercent = 20
	envoyLeast   = 3
	envoyBase    = 25 * time.Millisecond
	envoyCap     = 10 * envoyBase
	envoyRoute   = 15 * time.Second // the default time-out of a route, all tries included
)

func openEnvoy(rt http.RoundTripper, url string) (call, error) {
	client, e := &http.Client{Transport: rt}, &envoy{}
	return func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, envoyRoute)
		defer cancel()
		e.add(1, 0)
		defer e.add(-1, 0)
		for n := 1; ; n++ {
			status, err := attempt(ctx, client, url)
			if n > 1 {
				e.add(0, -1)
			}
			if err == nil && status < 500 {
				return status == http.StatusOK
			}
			if n > envoyRetries || !e.admit() {
				return false
			}
			if !sleep(ctx, rand.N(min(envoyBase<<n-envoyBase, envoyCap))) {
				e.add(0, -1)
				return false
			}
		}
	}, nil
}

func (e *envoy) add(active, retries int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active, e.retries = e.active+active, e.retries+retries
}

// admit asks for a retry.
func (e *envoy) admit() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.retries >= max(e.active*envoyPercent/100, envoyLeast) {
		return false
	}
	e.retries++
	return true
}
