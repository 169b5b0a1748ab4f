// The small service of docs/guides/metrics-and-traces.md: it calls a dependency that
// is busy now and then, and shows what its retries do.
package main

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/otelretry"
	"github.com/forbear-go/forbear/promretry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	// Traces go to http://localhost:4318, or to OTEL_EXPORTER_OTLP_ENDPOINT.
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		log.Fatal(err)
	}
	spans := trace.NewTracerProvider(trace.WithBatcher(exporter),
		trace.WithResource(resource.NewSchemaless(attribute.String("service.name", "checkout"))))
	defer func() { _ = spans.Shutdown(context.WithoutCancel(ctx)) }()
	otel.SetTracerProvider(spans)
	otel.SetTextMapPropagator(propagation.TraceContext{})

	// Metrics are collected from /metrics. The second observer adds the waits and the
	// ends of calls to the spans.
	metrics := promretry.New(promretry.WithService("checkout"))
	prometheus.MustRegister(metrics)
	events, err := otelretry.New(otelretry.WithService("checkout"))
	if err != nil {
		log.Fatal(err)
	}

	// The log of retries has the trace's id as its correlation_id.
	payments, err := forbear.New("payments", forbear.Policy{}, forbear.WithObserver(metrics.Observer()),
		forbear.WithObserver(events.Observer()), forbear.WithCorrelation(otelretry.TraceID))
	if err != nil {
		log.Fatal(err)
	}
	// From the outside in: a span for the call, the retries, a span for each attempt.
	client := &http.Client{Transport: otelretry.NewCallTransport(
		httpretry.NewTransport(otelretry.NewTransport(nil), payments))}

	upstream := httptest.NewServer(http.HandlerFunc(busy))
	defer upstream.Close()
	checkout := func(w http.ResponseWriter, r *http.Request) {
		ctx, span := otel.Tracer("checkout").Start(r.Context(), "GET /checkout")
		defer span.End()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, upstream.URL, nil)
		if err != nil {
			log.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	// Inbound counts what comes in, and lets only one layer retry.
	mux.Handle("GET /checkout", metrics.Inbound(http.HandlerFunc(checkout)))
	server := &http.Server{Addr: "127.0.0.1:9464", Handler: mux}
	if len(os.Args) > 1 {
		server.Addr = os.Args[1]
	}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	log.Printf("http://%s/checkout and /metrics", server.Addr)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Print(err)
	}
}

// busy is the dependency: one request in five is refused.
func busy(w http.ResponseWriter, _ *http.Request) {
	if rand.IntN(5) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "charged\n")
}
