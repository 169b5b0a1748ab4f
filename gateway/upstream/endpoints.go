package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/visit"
)

// MaxEndpoints is how many addresses one dependency may have. Of a name with more,
// the others are not used.
const MaxEndpoints = 256

// checkEndpoints returns all faults of the addresses.
func (c *Config) checkEndpoints() error {
	var errs []error
	if c.DNS != "" {
		if len(c.Endpoints) > 0 {
			errs = append(errs, errors.New("endpoints: a list or dns, not both"))
		}
		errs = append(errs, checkAddress(c.DNS))
	}
	if len(c.Endpoints) > MaxEndpoints {
		errs = append(errs, fmt.Errorf("endpoints: more than %d", MaxEndpoints))
	}
	seen := map[string]bool{}
	for _, e := range c.Endpoints {
		errs = append(errs, checkAddress(e))
		if seen[e] {
			errs = append(errs, fmt.Errorf("endpoints: %s is there twice", e))
		}
		seen[e] = true
	}
	return errors.Join(errs...)
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
		return fmt.Errorf("endpoints: %q is no host:port", address)
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

// balanced sends to several addresses in turns. It is safe for concurrent use.
type balanced struct {
	config Config
	like   *http.Transport // the addresses' transports are like this one
	lookup *lookup         // nil for a fixed list

	mu      sync.Mutex
	all     []*endpoint
	in      []*endpoint // those of all that are not left out
	turn    uint64      // of first attempts
	retries uint64      // of retries: in one count with the others they would take the turns of an address
	closed  bool
}

// endpoint is one address.
type endpoint struct {
	address string
	conns   *aging
	health  health // under the lock of balanced
}

func newBalanced(c Config) *balanced {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	// Many processes that start together do not begin at the same address.
	b := &balanced{config: c, like: newTransport(c), turn: rand.Uint64N(MaxEndpoints), retries: rand.Uint64N(MaxEndpoints)}
	if c.DNS != "" {
		b.lookup = newLookup(c, b.replace)
	} else {
		b.replace(c.Endpoints)
	}
	return b
}

// RoundTrip implements [http.RoundTripper].
func (b *balanced) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.lookup != nil {
		if err := b.lookup.refresh(r.Context()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
	}
	v := visit.Of(r.Context())
	s := b.pick(r, v, time.Now())
	body := holdBody(&r)
	for tries := 1; ; tries++ {
		resp, err := s.endpoint.conns.pick().RoundTrip(r)
		if tries < maxConnects && body.unread() && unconnected(r, err) {
			s.Ended(httpretry.Classify(r, nil, err))
			if next := b.elsewhere(s); next != nil {
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
	b        *balanced
	endpoint *endpoint
	at       time.Time
	trial    bool
}

// Ended implements [visit.Place].
func (s *sent) Ended(f forbear.Failure) { s.b.ended(s, f, time.Now()) }

// pick chooses an address for an attempt.
func (b *balanced) pick(r *http.Request, v *visit.Visit, now time.Time) *sent {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v != nil && v.Retry() {
		return &sent{b: b, endpoint: b.another(v), at: now}
	}
	if len(b.in) < len(b.all) {
		if e := b.due(r, now); e != nil {
			e.health.trying(now)
			return &sent{b: b, endpoint: e, at: now, trial: true}
		}
	}
	e := b.in[b.turn%uint64(len(b.in))]
	b.turn++
	return &sent{b: b, endpoint: e, at: now}
}

// another returns an address for a retry: one where the fewest attempts of the call
// have been, and not the last one if that can be avoided.
func (b *balanced) another(v *visit.Visit) *endpoint {
	var last *endpoint
	been := make(map[*endpoint]int, 4)
	for p := range v.Before() {
		if s, ok := p.(*sent); ok {
			last = cmp.Or(last, s.endpoint)
			been[s.endpoint]++
		}
	}
	if len(b.in) == 1 {
		return b.in[0]
	}
	var fewest []*endpoint
	for _, e := range b.in {
		switch {
		case e == last:
		case len(fewest) == 0 || been[e] < been[fewest[0]]:
			fewest = append(fewest[:0], e)
		case been[e] == been[fewest[0]]:
			fewest = append(fewest, e)
		}
	}
	b.retries++
	return fewest[b.retries%uint64(len(fewest))]
}

// elsewhere returns another address for an attempt that found no connection, or nil.
func (b *balanced) elsewhere(s *sent) *sent {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.in {
		e := b.in[b.retries%uint64(len(b.in))]
		if b.retries++; e != s.endpoint {
			return &sent{b: b, endpoint: e, at: time.Now()}
		}
	}
	return nil
}

// replace makes these the addresses. What is known of those that stay is kept, and
// the connections to those that go are closed when no request uses them.
func (b *balanced) replace(addresses []string) {
	for _, gone := range b.swap(addresses[:min(len(addresses), MaxEndpoints)]) {
		gone.conns.close()
	}
}

// swap is replace, and returns the endpoints that are gone.
func (b *balanced) swap(addresses []string) []*endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.all
	b.all = make([]*endpoint, 0, len(addresses))
	for _, a := range addresses {
		i := slices.IndexFunc(before, func(e *endpoint) bool { return e.address == a })
		if i >= 0 {
			b.all = append(b.all, before[i])
			continue
		}
		e := &endpoint{address: a, conns: b.config.to(a), health: newHealth()}
		if b.closed {
			e.conns.close()
		}
		b.all = append(b.all, e)
	}
	b.divide()
	return slices.DeleteFunc(slices.Clone(before), func(e *endpoint) bool { return slices.Contains(b.all, e) })
}

// each does something with the connections to every address.
func (b *balanced) each(do func(*aging)) {
	b.mu.Lock()
	all := b.all
	b.mu.Unlock()
	for _, e := range all {
		do(e.conns)
	}
}

// close ends the keeping of connections.
func (b *balanced) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.each((*aging).close)
}
