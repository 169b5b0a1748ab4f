package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/top"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/otelretry"
	"github.com/forbear-go/forbear/promretry"
)

// secrets are planted in every request. None may be seen again but by the
// upstream.
var secrets = map[string]string{
	"bearer token": "eyJhbGciOiJIUzI1NiJ9.planted",
	"cookie":       "session-4d2f9planted",
	"API key":      "sk_live_51Hplanted",
	"card number":  "4111111111111111",
	"person":       "jane.roe@planted.example",
	"fragment":     "fragment-planted",
	"answer":       "answer-body-planted",
}

// secretive returns a request that carries all of them.
func secretive(t *testing.T, method, base, path string) *http.Request {
	t.Helper()
	address := base + path
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	address += sep + "api_key=" + secrets["API key"] + "#" + secrets["fragment"]
	req, err := http.NewRequestWithContext(t.Context(), method, address,
		strings.NewReader(`{"card":"`+secrets["card number"]+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secrets["bearer token"])
	req.Header.Set("Cookie", "id="+secrets["cookie"])
	req.Header.Set("X-User-Email", secrets["person"])
	req.Header.Set("Referer", "https://shop.test/?email="+url.QueryEscape(secrets["person"]))
	return req
}

// leaks reports the secrets in what was emitted.
func leaks(t *testing.T, where, text string) {
	t.Helper()
	for name, secret := range secrets {
		for _, form := range []string{secret, url.QueryEscape(secret), fmt.Sprintf("%q", secret)} {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("the %s is in %s: ...%s...", name, where, text[max(0, i-120):min(len(text), i+120)])
				break
			}
		}
	}
}

// misbehaving is an upstream that fails in many ways, and tells secrets in its
// bodies, headers and status lines.
func misbehaving(t *testing.T) *httptest.Server {
	raw := func(w http.ResponseWriter, text string) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		w.Header().Set("Set-Cookie", secrets["cookie"])
		w.Header().Set("X-Debug", secrets["answer"])
		w.WriteHeader(code)
		_, _ = io.WriteString(w, secrets["answer"])
	})
	mux.HandleFunc("/retry-after", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	mux.HandleFunc("/close", func(w http.ResponseWriter, _ *http.Request) { raw(w, "") })
	mux.HandleFunc("/garbage", func(w http.ResponseWriter, _ *http.Request) { raw(w, "HTTP/1.1 "+secrets["answer"]+"\r\n\r\n") })
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		raw(w, "HTTP/1.1 200 OK\r\n"+secrets["answer"]+"\r\n\r\n")
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	})
	srv := httptest.NewServer(mux)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	t.Cleanup(srv.Close)
	return srv
}

// untrusted serves h with a certificate that nobody knows.
func untrusted(t *testing.T, h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// misdeeds are the ways to fail.
var misdeeds = []string{
	"/status/200", "/status/400", "/status/401", "/status/404", "/status/409", "/status/429", "/status/500", "/status/503",
	"/retry-after", "/close", "/garbage", "/header",
}

// closed returns an address where nobody listens.
func closed(t *testing.T) string {
	return fmt.Sprintf("http://127.0.0.1:%d", porttest.Free(t))
}

// Through serve: nothing that it logs, exposes, exports or answers by itself
// holds a secret of a request.
func TestServeKeepsSecrets(t *testing.T) {
	up := misbehaving(t)
	tls := untrusted(t, up.Config.Handler)
	c := newCollector(t)
	c.export(t)
	admin := closed(t)
	s := startServe(t, "--admin", strings.TrimPrefix(admin, "http://"), "--log-format", "json", "--config", clitest.File(t, "policy.yaml", fmt.Sprintf(`
service: checkout
profiles:
  quick:
    max_retries: 2
    backoff: {base: 1ms, cap: 2ms}
    idempotency: generate
dependencies:
  up: {extends: quick, url: %[1]s}
  guarded: {extends: quick, url: %[1]s, idempotency: reuse, breaker: {min_calls: 1, failure_rate: 25%%}}
  hasty: {extends: quick, per_attempt: 200ms, url: %[1]s}
  peer: {extends: quick, url: %[2]s}
  gone: {extends: quick, url: %[3]s}
gateway:
  listen: 127.0.0.1:0
  routes:
    - {prefix: /up, dependency: up}
    - {prefix: /guarded, dependency: guarded}
    - {prefix: /hasty, dependency: hasty}
    - {prefix: /peer, dependency: peer}
    - {prefix: /gone, dependency: gone}
`, up.URL, tls.URL, closed(t))))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var paths []string
	for _, m := range misdeeds {
		paths = append(paths, "/up"+m, "/guarded"+m)
	}
	paths = append(paths, "/hasty/slow", "/peer/status/200", "/gone/status/200", "/no-such-route", "/up/../status/200")
	for _, path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			resp, err := client.Do(secretive(t, method, s.base, path))
			if err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.Header.Get("Content-Type") == "application/problem+json" { // forbear's own answer
				leaks(t, "the answer to "+method+" "+path, fmt.Sprint(resp.Header)+string(body))
			}
		}
	}
	for _, page := range []string{"/metrics", "/admin/status", "/nothing"} {
		resp, err := client.Do(secretive(t, http.MethodGet, admin, page))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if page == "/metrics" && !strings.Contains(string(body), `retry_attempts_total{attempt_number="2",dependency="up",service="checkout"}`) {
			t.Errorf("/metrics: %d %s", resp.StatusCode, body)
		}
		leaks(t, "the admin page "+page, fmt.Sprint(resp.Header)+string(body))
	}
	top := clitest.Run(t, top.Command(), "", "--admin", admin, "--count", "1", "--interval", "100ms")
	leaks(t, "top", top.Out+top.Errors)
	if !strings.Contains(top.Out, "dependency=up") {
		t.Errorf("top: %+v", top)
	}
	s.stop()
	leaks(t, "the log", s.log.String())
	if !strings.Contains(s.log.String(), `"error_type":"http_503"`) || !strings.Contains(s.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log shows no retry or no certificate error:\n%s", s.log)
	}
	if !strings.Contains(s.log.String(), `"msg":"circuit breaker moved","dependency":"guarded"`) || !strings.Contains(s.log.String(), `"reason":"breaker_open"`) {
		t.Errorf("the log shows no breaker that opened and refused:\n%s", s.log)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) < 40 {
		t.Errorf("only %d spans arrived", len(c.spans))
	}
	leaks(t, "what was exported", c.raw.String())
}

// In a program: neither the log at its lowest level, nor metrics, spans and the
// texts of errors hold any.
func TestLibraryKeepsSecrets(t *testing.T) {
	up := misbehaving(t)
	tls := untrusted(t, up.Config.Handler)
	log := &clitest.Buffer{}
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	metrics, spans := promretry.New(), tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	reader := sdkmetric.NewManualReader()
	otel, err := otelretry.New(otelretry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	if err != nil {
		t.Fatal(err)
	}
	r, err := forbear.New("up", forbear.Policy{
		MaxRetries: 1, PerAttempt: 100 * time.Millisecond, Keys: forbear.KeyGenerate,
		Backoff: forbear.Backoff{Base: time.Millisecond, Cap: 2 * time.Millisecond},
		Breaker: breaker.Policy{Disabled: true},
	}, forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)), forbear.WithObserver(forbear.LogObserver(logger, nil)),
		forbear.WithObserver(metrics.Observer()), forbear.WithObserver(otel.Observer()))
	if err != nil {
		t.Fatal(err)
	}
	rt := httpretry.NewTransport(otelretry.NewTransport(nil, otelretry.WithTracerProvider(traces)), r)
	for _, base := range []string{up.URL, tls.URL, closed(t), "http://no-such-host.invalid"} {
		for _, path := range misdeeds {
			ctx, span := traces.Tracer("test").Start(context.Background(), "call")
			resp, err := rt.RoundTrip(secretive(t, http.MethodPost, base, path).WithContext(ctx))
			span.End()
			if err != nil {
				leaks(t, "the error of "+path, fmt.Sprintf("%v %+v %s", err, err, err))
				continue
			}
			if e, ok := httpretry.Outcome(resp); ok {
				leaks(t, "the outcome of "+path, e.Error())
			}
			_ = resp.Body.Close()
		}
	}
	leaks(t, "the log", log.String())
	reg := prometheus.NewRegistry()
	reg.MustRegister(metrics)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	leaks(t, "the metrics", w.Body.String())
	for _, s := range spans.Ended() {
		leaks(t, "span "+s.Name(), fmt.Sprint(s.Name(), s.Attributes(), s.Events(), s.Status()))
	}
	if n := len(spans.Ended()); n < 60 || !strings.Contains(log.String(), "tls_certificate") ||
		!slices.Contains(strings.Fields(w.Body.String()), `retry_attempts_total{attempt_number="2",dependency="up",service=""}`) {
		t.Errorf("%d spans; the story was not told:\n%s", n, log)
	}
}
