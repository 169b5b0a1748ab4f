package storm

import (
	"fmt"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// MaxReplicas is the number of replicas of one service, and maxServers that of all
// services, each replica counted.
const (
	MaxReplicas = 100
	maxServers  = 256
)

// replicas returns the services that v is to the engine: one, or a group of equal ones.
func (v *Service) replicas() []model.Service {
	n := max(v.Replicas, 1)
	one := v.replica(n).model()
	one.Replicas = n
	group := make([]model.Service, n)
	for i := range group {
		group[i] = one
	}
	return group
}

// replica returns one of n equal parts of v.
func (v Service) replica(n int) *Service {
	if n == 1 {
		return &v
	}
	part := 1 / float64(n)
	v.boundInRequests()
	v.Capacity *= part
	v.Concurrency = whole(v.Concurrency, part)
	v.QueueLength = whole(v.QueueLength, part)
	v.Limit = v.Limit.part(part)
	return &v
}

// boundInRequests turns a bound of the queue in seconds into one in requests, of which a
// part of the service keeps one at least.
func (v *Service) boundInRequests() {
	if n := int(v.Queue.Seconds() * v.Capacity); n > 0 {
		v.Queue, v.QueueLength = 0, n
	}
}

// part returns the part of its service that f hits.
func (s *Scenario) part(f *Fault) float64 {
	if v := s.service(f.Service); v != nil && v.Replicas > 1 && f.Replicas > 0 {
		return float64(f.Replicas) / float64(v.Replicas)
	}
	return 1
}

// service returns the service of that name, or nil.
func (s *Scenario) service(name string) *Service {
	for i := range s.Services {
		if s.Services[i].Name == name {
			return &s.Services[i]
		}
	}
	return nil
}

// merged returns what the services of the scenario have done: the sum over the replicas
// of each, and the longest of their queues.
func merged(m *model.Model, rec *model.Record) (all []model.ServiceTally) {
	for i := 0; i < len(m.Services); i += m.Services[i].Replicas {
		sum := rec.Services[i]
		sum.Load = append([]float64(nil), sum.Load...)
		for _, t := range rec.Services[i+1 : i+m.Services[i].Replicas] {
			sum.Arrivals += t.Arrivals
			sum.Retries += t.Retries
			sum.Served += t.Served
			sum.Wasted += t.Wasted
			sum.Shed += t.Shed
			sum.MaxQueue = max(sum.MaxQueue, t.MaxQueue)
			for bin, n := range t.Load {
				sum.Load[bin] += n
			}
		}
		all = append(all, sum)
	}
	return all
}

// replicas looks at the number of replicas of service i, and of all.
func (c *checker) replicas(i int) {
	n := c.s.Services[i].Replicas
	path := fmt.Sprintf("services[%d].replicas", i)
	c.number(path, float64(n), 0, MaxReplicas)
	if n <= 1 {
		return
	}
	sum := 0
	for j := range c.s.Services {
		sum += max(c.s.Services[j].Replicas, 1)
	}
	if sum > maxServers {
		c.add(path, "makes %d services of all replicas together: at most %d", sum, maxServers)
	}
}

// hitReplicas looks at how many replicas fault f hits.
func (c *checker) hitReplicas(path string, f *Fault) {
	for i := range c.s.Services {
		v := &c.s.Services[i]
		if v.Name != f.Service || f.Replicas == 0 || f.Kind == Spike {
			continue
		}
		if v.Replicas <= 1 {
			c.add(path, "is %d, and service %q has one replica: set replicas there", f.Replicas, v.Name)
		} else {
			c.number(path, float64(f.Replicas), 1, float64(v.Replicas))
		}
	}
}
