package page

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// asked is what the page asks when it is opened.
const asked = `{"scenario":{"name":"page","duration":"60s",
 "fleets":[{"name":"clients","instances":100,"rate":10000,"client":{"retries":3,"timeout":"1s","base":"100ms","cap":"2s",
  "budget":{"ratio":0.2,"window":"30s"},"baseline":{"unchecked":true}}}],
 "services":[{"name":"service","capacity":14285.714}],
 "faults":[{"kind":"brownout","at":"10s","for":"10s","factor":0.5}]},
 "variants":["","none","backoff","jitter","budget","breaker"],"herd":1000}`

func post(t testing.TB, h http.Handler, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("POST", "/api/run", strings.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRun(t *testing.T) {
	w := post(t, Handler(nil), asked)
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	var response struct {
		Results []struct {
			Name    string                   `json:"name"`
			Fresh   []float64                `json:"fresh"`
			P99     []*float64               `json:"p99_ms"`
			Summary struct{ Verdict string } `json:"summary"`
		} `json:"results"`
		Herds []struct {
			Name   string    `json:"name"`
			Counts []float64 `json:"counts"`
		} `json:"herds"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &response); err != nil {
		t.Fatal(err)
	}
	want := []string{"recovered", "metastable", "metastable", "metastable", "recovered", "recovered"}
	for i, r := range response.Results {
		if r.Summary.Verdict != want[i] {
			t.Errorf("%q: %s, want %s", r.Name, r.Summary.Verdict, want[i])
		}
		if len(r.Fresh) != bins || len(r.P99) != bins {
			t.Errorf("%q: %d and %d bins, want %d", r.Name, len(r.Fresh), len(r.P99), bins)
		}
	}
	if len(response.Herds) != 2 || response.Herds[0].Counts[100] != 1000 || response.Herds[0].Counts[300] != 1000 {
		t.Errorf("herds: without jitter, all 1,000 come at 100 ms and at 300 ms: %v", response.Herds)
	}
	t.Logf("%d bytes", w.Body.Len())
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		code       int
		part       string
	}{
		{"not JSON", `{`, 400, "unreadable"},
		{"unknown field", `{"scenery":{}}`, 400, "scenery"},
		{"more text", `{"scenario":{},"variants":[""]}{}`, 400, "after the document"},
		{"too long", `{"scenario":{"name":"` + strings.Repeat("x", maxBody) + `"}}`, 400, "too large"},
		{"no variant", `{"scenario":{}}`, 422, "variants"},
		{"unknown variant", `{"scenario":{},"variants":["hope"]}`, 422, "hope"},
		{"empty scenario", `{"scenario":{},"variants":[""]}`, 422, "fleets"},
		{"too much", strings.Replace(strings.Replace(asked, `"60s"`, `"24h"`, 1), `"duration"`, `"engine":"exact","duration"`, 1), 422, "the page allows"},
	} {
		w := post(t, Handler(nil), tt.body)
		if w.Code != tt.code || !bytes.Contains(w.Body.Bytes(), []byte(tt.part)) {
			t.Errorf("%s: %d %s, want %d and %q", tt.name, w.Code, w.Body, tt.code, tt.part)
		}
		if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: content type %q", tt.name, got)
		}
	}
}

func TestForeignPagesMayNotAsk(t *testing.T) {
	r := httptest.NewRequest("POST", "/api/run", strings.NewReader(asked))
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	Handler(nil).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a request from another site: %d, want 403", w.Code)
	}
}

func BenchmarkRun(b *testing.B) {
	h := Handler(nil)
	b.ReportAllocs()
	for b.Loop() {
		if w := post(b, h, asked); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
