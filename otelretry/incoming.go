package otelretry

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear/httpretry"
)

// Inbound is [httpretry.Inbound] that also counts the requests: outgoing over
// incoming is the multiplier that tells a retry storm from a surge.
func (o *Observer) Inbound(next http.Handler) http.Handler {
	return o.CountIncoming(httpretry.Inbound(next))
}

// CountIncoming only counts the requests that next receives.
func (o *Observer) CountIncoming(next http.Handler) http.Handler {
	service := o.serviceAttribute()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.inst.incoming.Add(r.Context(), 1, service)
		next.ServeHTTP(w, r)
	})
}

func (o *Observer) serviceAttribute() metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("service", o.service)))
}
