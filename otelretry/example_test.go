package otelretry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/otelretry"
)

// Trace each attempt of an HTTP call. The transport goes below httpretry's.
func ExampleNewTransport() {
	spans := tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Retry-Attempt") == "0" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer up.Close()
	payments, err := forbear.New("payments", quick, forbear.WithoutLog(), forbear.WithCorrelation(otelretry.TraceID))
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: httpretry.NewTransport(
		otelretry.NewTransport(nil, otelretry.WithTracerProvider(traces)), payments)}
	resp, err := client.Get(up.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	for _, s := range spans.Ended() {
		fmt.Printf("%s %s, resend count %q\n", s.Name(), attr(s, "http.response.status_code"), attr(s, "http.request.resend_count"))
	}
	// Output:
	// GET 503, resend count ""
	// GET 200, resend count "1"
}

// Trace each attempt of an operation that is not HTTP.
func ExampleTraced() {
	spans := tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	cache, err := forbear.New("cache", quick, forbear.WithoutLog())
	if err != nil {
		fmt.Println(err)
		return
	}
	calls := 0
	_ = cache.Do(context.Background(), otelretry.Traced("get", func(context.Context) error {
		if calls++; calls == 1 {
			return forbear.Retryable(io.ErrUnexpectedEOF, forbear.Hint{})
		}
		return nil
	}, otelretry.WithTracerProvider(traces)))
	for _, s := range spans.Ended() {
		fmt.Println(s.Name(), "attempt", attr(s, "forbear.attempt"))
	}
	// Output:
	// get attempt 1
	// get attempt 2
}
