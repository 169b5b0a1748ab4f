package probe_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/forbear-go/forbear/health/probe"
	"github.com/forbear-go/forbear/internal/testkit/hostiletest"
)

// A question ends in its time, whatever the endpoint does, and so does the prober.
func TestHostileEndpoints(t *testing.T) {
	hostiletest.Each(t, func(t *testing.T, servers []hostiletest.Server, transport *http.Transport) {
		hostiletest.Hold(t, servers, func(t *testing.T, s hostiletest.Server, url string) int {
			first := &once{RoundTripper: transport, asked: make(chan struct{})}
			p, err := probe.Start(probe.Config{URL: url, Interval: time.Millisecond, Timeout: time.Second, Transport: first, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Error(err)
				return 0
			}
			<-first.asked
			p.Close()
			return 1
		})
	})
}

// once sends one request; the next ones wait for their end.
type once struct {
	http.RoundTripper
	n     int
	asked chan struct{} // closed with the second
}

func (o *once) RoundTrip(req *http.Request) (*http.Response, error) {
	if o.n++; o.n == 1 {
		return o.RoundTripper.RoundTrip(req)
	}
	if o.n == 2 {
		close(o.asked)
	}
	<-req.Context().Done()
	return nil, req.Context().Err()
}
