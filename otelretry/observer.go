package otelretry

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel"
	otelmetric "go.opentelemetry.io/otel/metric"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/metric"
	"github.com/forbear-go/forbear/httpretry"
)

// scope names the instrumentation.
const scope = "github.com/forbear-go/forbear/otelretry"

// Observer is an observer for [forbear.WithObserver]. One serves all Retryers of
// a process. It does not replace the log of retries. It is safe for
// concurrent use; make it with [New].
type Observer struct{ recorder *metric.Recorder }

// Option changes what [New] returns.
type Option func(*config)

type config struct {
	service string
	meters  otelmetric.MeterProvider
}

// WithService sets the attribute service of all metrics.
func WithService(name string) Option { return func(c *config) { c.service = name } }

// WithMeterProvider replaces the global MeterProvider.
func WithMeterProvider(p otelmetric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// New returns an observer that writes to the global MeterProvider, unless an
// option names another. An error is that of an instrument.
func New(opts ...Option) (*Observer, error) {
	c := config{meters: otel.GetMeterProvider()}
	for _, opt := range opts {
		opt(&c)
	}
	meter := c.meters.Meter(scope)
	s, err := newSink(meter)
	o := &Observer{metric.NewRecorder(s, c.service)}
	return o, errors.Join(err, registerGauges(meter, o.recorder), registerKeyGauges(meter, o.recorder), registerStalledGauges(meter, o.recorder))
}

// Observer returns what to pass to [forbear.WithObserver]. The log stays on beside it.
func (o *Observer) Observer() *forbear.Observer {
	// The metrics are the recorder's; the span around the call gets two events more.
	f := o.recorder.Observer()
	scheduled, stopped := f.RetryScheduled, f.Stopped
	f.RetryScheduled = func(ctx context.Context, e forbear.RetryScheduled) {
		scheduled(ctx, e)
		o.spanRetry(ctx, e)
	}
	f.Stopped = func(ctx context.Context, e forbear.Stopped) {
		stopped(ctx, e)
		o.spanStopped(ctx, e)
	}
	return f
}

// Inbound is [httpretry.Inbound] that also counts the requests: outgoing over
// incoming is the multiplier that tells a retry storm from a surge.
func (o *Observer) Inbound(next http.Handler) http.Handler {
	return o.CountIncoming(httpretry.Inbound(next))
}

// CountIncoming only counts the requests that next receives.
func (o *Observer) CountIncoming(next http.Handler) http.Handler {
	return o.recorder.CountIncoming(next)
}
