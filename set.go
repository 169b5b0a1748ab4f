package forbear

import (
	"fmt"
	"sync"
)

// Set owns the Retryers of a service: one per dependency, each with its own
// budget. It is safe for concurrent use.
type Set struct {
	service  string
	fallback Policy
	opts     []Option

	mu       sync.RWMutex
	retryers map[string]*Retryer
}

// NewSet returns a Set for the named service. Dependencies that are not
// configured by [Set.Configure] use the fallback policy. The options apply to
// every Retryer.
func NewSet(service string, fallback Policy, opts ...Option) (*Set, error) {
	// Build one now, so that a bad fallback is found here and not on first use.
	if _, err := build("default", fallback, opts); err != nil {
		return nil, fmt.Errorf("set %q: %w", service, err)
	}
	return &Set{service: service, fallback: fallback, opts: opts, retryers: map[string]*Retryer{}}, nil
}

// Configure sets the policy of one dependency. A Retryer that was handed out
// before keeps its old policy.
func (s *Set) Configure(dependency string, p Policy, opts ...Option) error {
	r, err := New(dependency, p, append(s.opts[:len(s.opts):len(s.opts)], opts...)...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retryers[dependency] = r
	return nil
}

// Retryer returns the Retryer of a dependency, the same one each time. The
// names come from code or configuration, never from requests: each new one
// stays. An empty name is that of the dependency "default".
func (s *Set) Retryer(dependency string) *Retryer {
	if dependency == "" {
		dependency = "default"
	}
	s.mu.RLock()
	r := s.retryers[dependency]
	s.mu.RUnlock()
	if r != nil {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r = s.retryers[dependency]; r == nil {
		// The fallback was accepted in NewSet, under the same options.
		r = Must(New(dependency, s.fallback, s.opts...))
		s.retryers[dependency] = r
	}
	return r
}
