package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/visit"
	"github.com/forbear-go/forbear/httpretry"
)

// MaxEndpoints is how many addresses one dependency may have. Of a name with more,
// the others are not used.
const MaxEndpoints = 256

// checkEndpoints returns all faults of the addresses.
func (c *Config) checkEndpoints() error {
	var errs []error
	if c.DNS != "" {
		if len(c.Endpoints) > 0 {
			errs = append(errs, errors.New("endpoints: want a list or dns, not both"))
		}
		errs = append(errs, checkAddress(c.DNS))
	}
	if len(c.Endpoints) > MaxEndpoints {
		errs = append(errs, fmt.Errorf("endpoints: want at most %d", MaxEndpoints))
	}
	seen := map[string]bool{}
	for _, e := range c.Endpoints {
		errs = append(errs, checkAddress(e))
		if seen[e] {
			errs = append(errs, fmt.Errorf("endpoints: %s appears twice", e))
		}
		seen[e] = true
	}
	return errors.Join(errs...)
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
		return fmt.Errorf("endpoints: %q is not HOST:PORT, such as 10.0.0.1:8443", address)
	}
	return nil
}

// to returns the connections to one address, whatever the URL of a request says.
//
// Each address has a transport of its own. One transport would keep the idle
// connections of all of them in one pool, by the host of the URL, and would use any;
// over HTTP/2 it would make one connection only. This way the connections of an
// address that is gone can be closed, too.
func (c *Config) to(address string) *aging {
	own := *c
	return own.aging(func() *http.Transport {
		t := newTransport(own)
		dial := t.DialContext
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, address)
		}
		t.Proxy = nil // it would be dialed at the address
		return t
	})
}

// endpoint is one address.
type endpoint struct {
	address string
	conns   *aging
	health  health // under the lock of Upstream
}

// newBalanced returns an Upstream that sends to several addresses in turns.
func newBalanced(c Config) *Upstream {
	// Many processes that start together do not begin at the same address.
	u := &Upstream{config: c, like: newTransport(c), turn: rand.Uint64N(MaxEndpoints), retries: rand.Uint64N(MaxEndpoints)}
	if c.DNS != "" {
		u.lookup = newLookup(c, u.replace)
	} else {
		u.replace(c.Endpoints)
	}
	return u
}

// balance sends a request to one of several addresses.
func (u *Upstream) balance(r *http.Request) (*http.Response, error) {
	if u.lookup != nil {
		if err := u.lookup.refresh(r.Context()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
	}
	v := visit.Of(r.Context())
	s := u.pick(r, v, time.Now())
	body := holdBody(&r)
	for tries := 1; ; tries++ {
		resp, err := s.endpoint.conns.pick().send(r)
		if tries < maxConnects && body.unread() && unconnected(r, err) {
			s.Ended(httpretry.Classify(r, nil, err))
			if next := u.elsewhere(s); next != nil {
				s = next
				continue
			}
		}
		body.release()
		if noted := v != nil && v.To(s); !noted {
			s.Ended(httpretry.Classify(r, resp, err))
		}
		return resp, err
	}
}

// sent is one attempt at one address, a [visit.Place].
type sent struct {
	u        *Upstream
	endpoint *endpoint
	at       time.Time
	trial    bool
}

// Ended implements [visit.Place].
func (s *sent) Ended(f forbear.Failure) { s.u.ended(s, f, time.Now()) }

// pick chooses an address for an attempt.
func (u *Upstream) pick(r *http.Request, v *visit.Visit, now time.Time) *sent {
	u.mu.Lock()
	defer u.mu.Unlock()
	if v != nil && v.Retry() {
		return &sent{u: u, endpoint: u.another(v), at: now}
	}
	if len(u.in) < len(u.all) {
		if e := u.due(r, now); e != nil {
			e.health.trial = now
			return &sent{u: u, endpoint: e, at: now, trial: true}
		}
	}
	e := u.in[u.turn%uint64(len(u.in))]
	u.turn++
	return &sent{u: u, endpoint: e, at: now}
}

// another returns an address for a retry: one where the fewest attempts of the call
// have been, and not the last one if that can be avoided.
func (u *Upstream) another(v *visit.Visit) *endpoint {
	var last *endpoint
	been := make(map[*endpoint]int, 4)
	for p := range v.Before() {
		if s, ok := p.(*sent); ok {
			last = cmp.Or(last, s.endpoint)
			been[s.endpoint]++
		}
	}
	if len(u.in) == 1 {
		return u.in[0]
	}
	var fewest []*endpoint
	for _, e := range u.in {
		switch {
		case e == last:
		case len(fewest) == 0 || been[e] < been[fewest[0]]:
			fewest = append(fewest[:0], e)
		case been[e] == been[fewest[0]]:
			fewest = append(fewest, e)
		}
	}
	u.retries++
	return fewest[u.retries%uint64(len(fewest))]
}

// elsewhere returns another address for an attempt that found no connection, or nil.
func (u *Upstream) elsewhere(s *sent) *sent {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range u.in {
		e := u.in[u.retries%uint64(len(u.in))]
		if u.retries++; e != s.endpoint {
			return &sent{u: u, endpoint: e, at: time.Now()}
		}
	}
	return nil
}

// replace makes these the addresses. What is known of those that stay is kept, and
// the connections to those that go are closed when no request uses them.
func (u *Upstream) replace(addresses []string) {
	for _, gone := range u.swap(addresses[:min(len(addresses), MaxEndpoints)]) {
		gone.conns.close()
	}
}

// swap is replace, and returns the endpoints that are gone.
func (u *Upstream) swap(addresses []string) []*endpoint {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.all
	u.all = make([]*endpoint, 0, len(addresses))
	for _, a := range addresses {
		i := slices.IndexFunc(before, func(e *endpoint) bool { return e.address == a })
		if i >= 0 {
			u.all = append(u.all, before[i])
			continue
		}
		e := &endpoint{address: a, conns: u.config.to(a), health: newHealth()}
		if u.closed {
			e.conns.close()
		}
		u.all = append(u.all, e)
	}
	u.divide()
	return slices.DeleteFunc(slices.Clone(before), func(e *endpoint) bool { return slices.Contains(u.all, e) })
}

// EndpointStatus is where an address stands.
type EndpointStatus struct {
	Address string `json:"address"`
	// In says that it takes part in the turns.
	In bool `json:"in"`
	// Failures is how many attempts have failed there in a row.
	Failures int `json:"failures,omitzero"`
	// Until is when one that is left out is tried again.
	Until time.Time `json:"until,omitzero"`
}

// Status returns where the addresses stand; nil where the URL says where connections
// go, or one address does.
func (u *Upstream) Status() []EndpointStatus {
	if u.only != nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	found := make([]EndpointStatus, 0, len(u.all))
	for _, e := range u.all {
		s := EndpointStatus{Address: e.address, In: !e.health.out, Failures: e.health.streak}
		if e.health.out {
			s.Until = e.health.until
		}
		found = append(found, s)
	}
	return found
}
