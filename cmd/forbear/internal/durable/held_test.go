package durable

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear/webhook"
)

// gauge reads one of the service's metrics: the first of that name, or that with a label's
// value.
func gauge(t *testing.T, s *Service, name string, of ...string) float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(s); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (len(of) == 0 || m.GetLabel()[0].GetValue() == of[0]) {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// A held endpoint says so in the API and in a gauge, raises one alert whatever
// is due for it, and is looked at again when it is patched.
func TestHeldEndpointShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Setenv(SecretPrefix+"SIGN", webhook.NewSecret())
		var mu sync.Mutex
		sends := map[string]int{}
		tr := guarded(&mu, func(r *http.Request) (*http.Response, error) {
			sends[r.Header.Get("Webhook-Id")]++
			return answer(200), nil
		})
		s, stop := start(t, Options{Transport: tr, Poll: time.Minute})
		ask(t, s, "PUT", "/v1/endpoints/a", `{"url":"https://example.com/","secrets":["env:SIGN"]}`)
		if err := os.Unsetenv(SecretPrefix + "SIGN"); err != nil {
			t.Fatal(err)
		}
		const n = 200
		for i := range n {
			send(t, s, webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"a"}})
		}
		time.Sleep(time.Hour)
		_, v := ask(t, s, "GET", "/v1/endpoints/a", "")
		if want := "secret not available: env:SIGN: environment variable FORBEAR_SECRET_SIGN is not set: start the process with it"; v["held"] != want || v["state"] != "enabled" {
			t.Errorf("shown is %v, want held %q", v, want)
		}
		if got := gauge(t, s, "webhook_endpoints_held"); got != 1 {
			t.Errorf("the gauge says %v", got)
		}
		raised, detail := 0, ""
		alerts, err := s.DB.DeadLetters().AlertPage(t.Context(), 0, 100)
		for _, a := range alerts {
			if a.Reason == "credential" {
				raised, detail = raised+int(a.Count), a.Detail
			}
		}
		if err != nil || raised != 1 || !strings.Contains(detail, "endpoint a ") || !strings.Contains(detail, "env:SIGN") {
			t.Errorf("%d alerts, %q, %v; want one", raised, detail, err)
		}
		mu.Lock()
		if len(sends) != 0 {
			t.Errorf("%d were sent unsigned", len(sends))
		}
		mu.Unlock()
		if w, _ := ask(t, s, "PATCH", "/v1/endpoints/a", `{"rate":50}`); w.Code != 422 {
			t.Errorf("a patch while the secret is missing: %d", w.Code)
		}
		t.Setenv(SecretPrefix+"SIGN", webhook.NewSecret())
		if w, v := ask(t, s, "PATCH", "/v1/endpoints/a", `{"rate":50}`); w.Code != 200 || v["held"] != nil {
			t.Errorf("a patch when it is back: %d %v", w.Code, v)
		}
		time.Sleep(10 * time.Second) // 200 at 50 a second, and no minute before
		mu.Lock()
		defer mu.Unlock()
		for id, times := range sends {
			if times != 1 {
				t.Errorf("%s was sent %d times", id, times)
			}
		}
		if got := gauge(t, s, "webhook_endpoints_held"); got != 0 || len(sends) != n {
			t.Errorf("the gauge says %v, %d of %d were sent", got, len(sends), n)
		}
		stop()
	})
}
