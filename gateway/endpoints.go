package gateway

import "github.com/forbear-go/forbear/gateway/upstream"

// SetUpstreams says over which connections the dependencies are reached, by their
// names, so that a [Status] has their addresses. It replaces those of before.
func (s *Stats) SetUpstreams(of map[string]*upstream.Upstream) { s.upstreams.Store(&of) }

// SetDeliveries says how to ask what holds up deliveries to a dependency, nil for one
// to which nothing is delivered; and which dependencies are held, and so are shown also
// when nothing has been sent to them. It is called once, before the first [Stats.Status].
func (s *Stats) SetDeliveries(of func(dependency string) *DeliveryStatus, held func() []string) {
	s.deliveries, s.held = of, held
}

// Endpoints returns where the addresses of each dependency stand, of those that have
// several.
func (s *Stats) Endpoints() map[string][]upstream.EndpointStatus {
	found := map[string][]upstream.EndpointStatus{}
	if of := s.upstreams.Load(); of != nil {
		for name, u := range *of {
			if status := u.Status(); len(status) > 0 {
				found[name] = status
			}
		}
	}
	return found
}
