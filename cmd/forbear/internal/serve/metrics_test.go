package serve

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/otelretry"
	"github.com/forbear-go/forbear/promretry"
	"github.com/forbear-go/forbear/reason"
)

// sinks are the three that an operator can read the metrics from.
type sinks struct {
	prom   *promretry.Metrics
	otel   *otelretry.Observer
	reader *sdkmetric.ManualReader
	stats  *gateway.Stats
}

func newSinks(t *testing.T) *sinks {
	t.Helper()
	s := &sinks{prom: promretry.New(promretry.WithService("checkout")), reader: sdkmetric.NewManualReader(), stats: gateway.NewStats("checkout")}
	var err error
	s.otel, err = otelretry.New(otelretry.WithService("checkout"),
		otelretry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sinks) retryer(t *testing.T, name string, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	r, err := forbear.New(name, p, append(opts, forbear.WithoutLog(), forbear.WithObserver(s.prom.Observer()),
		forbear.WithObserver(s.otel.Observer()), forbear.WithObserver(s.stats.Observer()))...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// live makes what the sinks can count happen: calls that are saved, refused,
// out of budget, out of time and beyond repair.
func (s *sinks) live(t *testing.T) {
	failing := func(n int) func(context.Context) error {
		return func(context.Context) error {
			if n--; n >= 0 {
				return forbear.Retryable(errors.New("flaky"), forbear.Hint{})
			}
			return nil
		}
	}
	ctx := t.Context()
	payments := s.retryer(t, "payments", forbear.Policy{MaxConcurrent: 1})
	for _, failures := range []int{0, 0, 0, 0, 1, 2, 9, 9} {
		_ = payments.Do(ctx, failing(failures))
	}
	_ = payments.Do(ctx, func(ctx context.Context) error { return payments.Do(ctx, failing(0)) })
	edge.Repeated(ctx, payments, 2)
	edge.Refreshed(ctx, payments, nil)
	search := s.retryer(t, "search", forbear.Policy{Disabled: true})
	_ = search.Do(ctx, func(context.Context) error { return x509.UnknownAuthorityError{} })
	for range 25 {
		_ = search.Do(ctx, failing(1)) // until its breaker opens, and then refused
	}
	time.Sleep(time.Minute)
	_ = search.Do(ctx, failing(1))
	late, cancel := context.WithTimeout(ctx, -1)
	defer cancel()
	_ = payments.Do(late, failing(0))
	orders := s.retryer(t, "orders", forbear.Policy{Kind: forbear.Event}, forbear.WithCallerDeadLetter())
	_ = orders.Do(ctx, func(context.Context) error { return forbear.Terminal(errors.New("no")) })
	edge.DeadLettered(ctx, orders, "orders-dlq", reason.Exhausted)
	h := s.stats.CountIncoming(s.prom.CountIncoming(s.otel.CountIncoming(http.NotFoundHandler())))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}

// ofPrometheus returns each series but those at zero as name{labels}.
// Histograms are their number of observations.
func (s *sinks) ofPrometheus(t *testing.T) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(s.prom)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []attribute.KeyValue
			for _, l := range m.GetLabel() {
				labels = append(labels, attribute.String(l.GetName(), l.GetValue()))
			}
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			note(got, f.GetName(), attribute.NewSet(labels...), v)
		}
	}
	return got
}

// ofOpenTelemetry is like ofPrometheus.
func (s *sinks) ofOpenTelemetry(t *testing.T) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				note(got, m.Name, p.Attributes, float64(p.Value))
			}
		case metricdata.Gauge[int64]:
			for _, p := range d.DataPoints {
				note(got, m.Name, p.Attributes, float64(p.Value))
			}
		case metricdata.Gauge[float64]:
			for _, p := range d.DataPoints {
				note(got, m.Name, p.Attributes, p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				note(got, m.Name, p.Attributes, float64(p.Count))
			}
		default:
			t.Errorf("%s: %T", m.Name, d)
		}
	}
	return got
}

func note(got map[string]float64, name string, labels attribute.Set, v float64) {
	if v != 0 { // Prometheus begins its histograms at zero, OpenTelemetry cannot
		got[name+"{"+labels.Encoded(attribute.DefaultEncoder())+"}"] = v
	}
}

// The three sinks of the one table agree on every count that they share: what
// an operator reads does not depend on where.
func TestSinksAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSinks(t)
		s.live(t)
		prom, otel := s.ofPrometheus(t), s.ofOpenTelemetry(t)
		if len(prom) < 40 {
			t.Errorf("only %d series moved", len(prom))
		}
		union := maps.Clone(prom)
		maps.Copy(union, otel)
		for name := range union {
			if prom[name] != otel[name] {
				t.Errorf("%s: Prometheus has %v, OpenTelemetry %v", name, prom[name], otel[name])
			}
		}
		for _, name := range []string{
			"circuit_breaker_opened_total{cause=failures,dependency=search,service=checkout}",
			"retry_layered_sends_total{dependency=payments,service=checkout}",
		} {
			if prom[name] != 1 {
				t.Errorf("the story lacks %s: got %v, want 1", name, prom[name])
			}
		}
		s.checkStats(t, prom)
	})
}

// checkStats compares the admin page with Prometheus. The page sums up over
// labels that it does not show.
func (s *sinks) checkStats(t *testing.T, prom map[string]float64) {
	t.Helper()
	sum := func(name string, labels ...string) (n int64) {
		for series, v := range prom {
			found, rest, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
			has := strings.Split(rest, ",")
			if found == name && !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
				n += int64(v)
			}
		}
		return n
	}
	check := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the admin page has %d, Prometheus %d", what, got, want)
		}
	}
	st := s.stats.Status(time.Now())
	check("incoming", st.Incoming, sum("retry_incoming_requests_total"))
	if len(st.Dependencies) != 3 {
		t.Errorf("%d dependencies, want 3", len(st.Dependencies))
	}
	for _, d := range st.Dependencies {
		of := "dependency=" + d.Dependency
		check(of+" initial", d.Initial, sum("retry_initial_requests_total", of))
		check(of+" retries", d.Retries, sum("retry_attempts_total", of))
		check(of+" exhausted", d.Exhausted, sum("retry_exhausted_total", of))
		check(of+" certificates", d.CertErrors, sum("tls_certificate_errors_total", of))
		check(of+" layered", d.Layered, sum("retry_layered_sends_total", of))
		for _, by := range []struct {
			label, metric string
			counts        map[string]int64
		}{
			{"error_type", "retry_success_after_retry_total", d.Recovered},
			{"error_type", "retry_failed_calls_total", d.Failed},
			{"reason", "retry_suppressed_total", d.Suppressed},
		} {
			var total int64
			for value, n := range by.counts {
				check(fmt.Sprintf("%s %s %s", of, by.metric, value), n, sum(by.metric, of, by.label+"="+value))
				total += n
			}
			check(of+" "+by.metric, total, sum(by.metric, of))
		}
	}
}
