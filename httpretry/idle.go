package httpretry

import (
	"net/http"
	"time"

	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/internal/eventstream"
)

// idleOf returns for how long the body of the response may stand still; 0 is for
// ever.
func (a *attempt) idleOf(resp *http.Response) time.Duration {
	if a.timer == nil || unhurried(resp.Header) {
		return 0
	}
	return max(a.idle, 0)
}

// unhurried reports whether a body may have nothing to say for any time: a stream of
// events, and the messages of gRPC, whose deadline is their own.
func unhurried(h http.Header) bool { return eventstream.Is(h) || grpcwire.Is(h) }
