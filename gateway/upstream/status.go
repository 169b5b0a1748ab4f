package upstream

import "time"

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
	b := u.balanced
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := make([]EndpointStatus, 0, len(b.all))
	for _, e := range b.all {
		s := EndpointStatus{Address: e.address, In: !e.health.out, Failures: e.health.streak}
		if e.health.out {
			s.Until = e.health.until
		}
		found = append(found, s)
	}
	return found
}
