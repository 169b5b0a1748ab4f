package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/health/probe"
	"github.com/forbear-go/forbear/policyfile"
)

// probes are the health endpoints that are asked on behalf of the Retryers in
// charge. Reloads add and end some, and the shutdown ends them all, from another
// goroutine. The zero value asks nothing.
type probes struct {
	mu      sync.Mutex
	running map[probed]asking
	ended   bool
}

// probed is one endpoint of one dependency. Two dependencies may name the same
// one: each has its own prober, and its own lines in the log.
type probed struct {
	dependency string
	endpoint
}

// endpoint is what a prober is made from.
type endpoint struct {
	policyfile.Probe
	tls policyfile.TLS // of the dependency, since the endpoint is its own
}

// endpointOf returns the health endpoint of a dependency; the zero value is none.
func endpointOf(dep policyfile.Dependency) endpoint {
	if dep.Probe.Endpoint == "" {
		return endpoint{}
	}
	return endpoint{dep.Probe, dep.TLS}
}

// asking is a prober and its connections.
type asking struct {
	*probe.Prober
	over *upstream.Upstream
}

// Close ends both.
func (a asking) Close() {
	a.Prober.Close()
	a.over.Close()
}

// of returns the prober of a dependency, nil for one that names no endpoint. One
// that is running stays, with what it has learnt. Of how the dependency is reached, its
// TLS alone is the endpoint's: that may be another port, and another host.
func (p *probes) of(dep policyfile.Dependency, reach upstream.Config, log *slog.Logger) (*probe.Prober, error) {
	e := endpointOf(dep)
	if e == (endpoint{}) {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := probed{dep.Name, e}
	if running, ok := p.running[key]; ok {
		return running.Prober, nil
	}
	if p.ended { // a reload has met the shutdown: no one would end this one
		return nil, errors.New("serve is stopping")
	}
	reach.Logger = log
	over, err := upstream.New(reach)
	if err != nil {
		return nil, of("dependency "+dep.Name, err)
	}
	started, err := probe.Start(probe.Config{
		URL: dep.Probe.Endpoint, Interval: dep.Probe.Interval, Transport: over, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("dependency %s: %w", dep.Name, err)
	}
	if p.running == nil {
		p.running = map[probed]asking{}
	}
	p.running[key] = asking{started, over}
	return started, nil
}

// retain ends the probers that none of the Retryers in charge asks: those of the
// policy before, or of one that was refused.
func (p *probes) retain(inCharge map[string]dependency) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, running := range p.running {
		if k, ok := inCharge[key.dependency]; !ok || k.from.probe != key.endpoint {
			running.Close()
			delete(p.running, key)
		}
	}
}

// close ends them all, permanently.
func (p *probes) close() {
	// First, so that a reload under way starts no other.
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.retain(nil)
}
