package lattice

import (
	"net"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
)

// newBase returns net/http's default transport with the connect timeout of r.
func newBase(r *forbear.Retryer) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext = (&net.Dialer{Timeout: r.Policy().Connect, KeepAlive: 30 * time.Second}).DialContext
	return base
}
