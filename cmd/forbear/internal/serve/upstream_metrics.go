package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/gateway/upstream"
)

// endpointGauges are the addresses of the dependencies that have several, for
// Prometheus. They are read when a scrape asks: an address is left out by the calls
// that failed there.
type endpointGauges struct {
	service  string
	statuses func() map[string][]upstream.EndpointStatus
}

var (
	endpointsAll = prometheus.NewDesc("upstream_endpoints",
		"Addresses of a dependency.", []string{"service", "dependency"}, nil)
	endpointsOut = prometheus.NewDesc("upstream_endpoints_left_out",
		"Addresses of a dependency that are skipped because they fail and others do not.", []string{"service", "dependency"}, nil)
)

// Describe implements [prometheus.Collector].
func (g endpointGauges) Describe(to chan<- *prometheus.Desc) {
	to <- endpointsAll
	to <- endpointsOut
}

// Collect implements [prometheus.Collector].
func (g endpointGauges) Collect(to chan<- prometheus.Metric) {
	for dependency, endpoints := range g.statuses() {
		if len(endpoints) == 0 {
			continue
		}
		out := 0
		for _, e := range endpoints {
			if !e.In {
				out++
			}
		}
		to <- prometheus.MustNewConstMetric(endpointsAll, prometheus.GaugeValue, float64(len(endpoints)), g.service, dependency)
		to <- prometheus.MustNewConstMetric(endpointsOut, prometheus.GaugeValue, float64(out), g.service, dependency)
	}
}
