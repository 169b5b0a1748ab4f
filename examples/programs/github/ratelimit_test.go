package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// TestRateLimitIsNotRetried, neither with 403 nor with 429.
func TestRateLimitIsNotRetried(t *testing.T) {
	var sent atomic.Int32
	server := httptest.NewServer(limited(time.Now().Add(time.Hour), &sent))
	defer server.Close()
	t.Setenv("GITHUB_URL", server.URL+"/")
	t.Setenv("GITHUB_TOKEN", "t1")
	for n := range int32(2) {
		main()
		if sent.Load() != n+1 {
			t.Errorf("call %d: %d requests", n+1, sent.Load())
		}
	}
}

// limited says that the rate limit is used up, first with 403 and then with 429.
func limited(reset time.Time, sent *atomic.Int32) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		if sent.Add(1) == 1 {
			w.WriteHeader(http.StatusForbidden)
		} else {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		fmt.Fprint(w, `{"message": "API rate limit exceeded"}`)
	}
}
