package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/gateway/internal/direct"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// pool is the connections of one transport, from its making until it is closed. It
// is safe for concurrent use.
type pool struct {
	transport *http.Transport
	direct    direct.Transport               // over it
	material  *certfile.Material             // that its connections are made with
	fault     atomic.Pointer[mismatch.Error] // what a connection of net/http has found out last
	moving    time.Time                      // from when on requests move to another pool
	end       time.Time                      // from when on none gets a request; zero for never
}

func newPool(t *http.Transport) *pool {
	return &pool{transport: t, direct: direct.Transport{Next: t}}
}

// send sends a request once.
func (p *pool) send(r *http.Request) (*http.Response, error) {
	if len(r.Header["Upgrade"]) > 0 {
		r = withVersion(r)
	}
	known := p.fault.Load()
	resp, err := p.direct.RoundTrip(r)
	if err != nil {
		return nil, p.because(err, known)
	}
	return resp, nil
}

// because adds to an error what a connection has found out since known was loaded.
// What net/http says of a connection that both sides broke off depends on which of
// its goroutines was first.
func (p *pool) because(err error, known *mismatch.Error) error {
	found := p.fault.Load()
	if found == nil || found == known {
		return err
	}
	if _, said := errors.AsType[mismatch.Error](err); said {
		return err
	}
	return fmt.Errorf("%w: %w", *found, err)
}
