package partial_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/partial"
	"github.com/forbear-go/forbear/httpretry"
)

// wire is a transport without a network.
type wire partial.Send

func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	status, err := w(req.Context())
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}, nil
}

// overHTTP is a partial.Client.
func overHTTP(r *forbear.Retryer, send partial.Send) func(context.Context) bool {
	transport := httpretry.NewTransport(wire(send), r)
	return func(ctx context.Context) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://partial.test/", nil)
		if err != nil {
			return false
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
}

func TestPartialFailureStaysPartial(t *testing.T) {
	partial.StaysPartial(t, overHTTP, forbear.Policy{})
}
func TestOutageOpens(t *testing.T)       { partial.Opens(t, overHTTP, forbear.Policy{}) }
func TestTroubleThatPasses(t *testing.T) { partial.Passes(t, overHTTP, forbear.Policy{}) }
func TestFlaps(t *testing.T)             { partial.Flaps(t, overHTTP, forbear.Policy{}) }
func TestBursts(t *testing.T)            { partial.Bursts(t, overHTTP, forbear.Policy{}) }
