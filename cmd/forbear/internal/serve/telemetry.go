package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/otelretry"
)

// telemetry exports to an OpenTelemetry collector. A nil one does nothing, so
// that its users need not ask whether there is one.
type telemetry struct {
	meters   *sdkmetric.MeterProvider
	traces   *sdktrace.TracerProvider
	tracer   trace.Tracer
	observer *otelretry.Observer
}

// tracecontext carries spans along with requests, by W3C Trace Context. Baggage is
// not carried: it may hold anything a caller put there, and an upstream need not see
// it.
var tracecontext = propagation.TraceContext{}

// wantsTelemetry reports whether the environment asks for an export: names an
// endpoint, or an exporter. The exporters' own default is a collector on
// localhost, which would log a failure every minute where there is none.
func wantsTelemetry() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	for _, name := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
		"OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER",
	} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// newTelemetry builds what the OTEL_ variables ask for; nil when they ask for
// nothing. There are no flags: an operator who runs a collector has these
// variables in every process.
func newTelemetry(ctx context.Context, log *slog.Logger, service string) (*telemetry, error) {
	if !wantsTelemetry() {
		return nil, nil
	}
	// What an exporter says of a failure may hold its endpoint and headers.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { log.Warn("telemetry was not exported") }))
	spans, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("exporting traces as the OTEL_ variables say: %w", err)
	}
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil {
		return nil, fmt.Errorf("exporting metrics as the OTEL_ variables say: %w", err)
	}
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last and win.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describing the service as the OTEL_ variables say: %w", err)
	}
	t := &telemetry{
		meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res)),
		traces: sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(res)),
	}
	t.tracer = t.traces.Tracer("github.com/forbear-go/forbear/cmd/forbear")
	t.observer, err = otelretry.New(otelretry.WithService(service), otelretry.WithMeterProvider(t.meters))
	return t, err
}

// options returns the observer of the metrics, for each Retryer. Without telemetry
// it is empty.
func (t *telemetry) options() []forbear.Option {
	if t == nil {
		return nil
	}
	return []forbear.Option{forbear.WithObserver(t.observer.Observer())}
}

// wrap makes a span of each attempt, and sends its id along to the upstream. A
// retried request has one span an attempt, which shows where its time went.
func (t *telemetry) wrap(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return otelretry.NewTransport(next, otelretry.WithTracerProvider(t.traces), otelretry.WithPropagator(tracecontext))
}

// inbound makes a span of each call, under that of the caller: the attempts are
// its children, so that a trace shows what was one request to the caller.
func (t *telemetry) inbound(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := tracecontext.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, "forbear call", trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// shutdown sends what is left, until ctx ends. What cannot be sent by then is lost:
// the process does not hang on a dead collector. An exporter of the SDK may: it reads the
// connection of a collector that has switched protocols, which ends with no context.
func (t *telemetry) shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(t.traces.Shutdown(ctx), t.meters.Shutdown(ctx)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
