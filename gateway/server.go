package gateway

import (
	"net/http"
	"time"
)

// NewServer returns a server for h with the timeouts of INTG-STD-035: 5 s for
// the headers of a request and 120 s for an idle connection. Bodies may take
// their time, in both directions: the policies bound the calls.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    256 << 10,
	}
}
