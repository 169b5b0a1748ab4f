package gateway_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// Each response of a keyed route names the request that it is for, whoever wrote
// it: the target, the store, or the gateway itself. The id is the caller's where
// it brought one, and otherwise one that the gateway made.
func TestIngressResponsesCarryTheCorrelationID(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	defer up.Close()
	front := httptest.NewServer(keyedGateway(t, up.URL, idempotency.Options{Scope: gateway.PrincipalHeader("X-Principal"), MaxRequest: 8}))
	defer front.Close()
	for _, tt := range []struct {
		name    string
		headers []string
		body    string
		status  int
		want    string // "" stands for one that the gateway made
	}{
		{"unauthenticated, no id", nil, "{}", 401, ""},
		{"unauthenticated, with an id", []string{"X-Correlation-ID", "c-1"}, "{}", 401, "c-1"},
		{"unauthenticated, with a request's id", []string{"X-Request-Id", "r-1"}, "{}", 401, "r-1"},
		{"two principals", []string{"X-Principal", "a", "X-Principal", "b"}, "{}", 401, ""},
		{"no key", []string{"X-Principal", "a", "Idempotency-Key", ""}, "{}", 400, ""},
		{"too large", []string{"X-Principal", "a"}, strings.Repeat("x", 9), 413, ""},
		{"done", []string{"X-Principal", "a"}, "{}", 201, ""},
		{"replayed", []string{"X-Principal", "a"}, "{}", 201, ""},
		{"replayed, with an id", []string{"X-Principal", "a", "X-Correlation-ID", "c-2"}, "{}", 201, "c-2"},
		{"reused", []string{"X-Principal", "a"}, "[]", 422, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/pay", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", ingressKey)
			for i := 0; i < len(tt.headers); i += 2 {
				if tt.headers[i] == "Idempotency-Key" {
					req.Header.Del("Idempotency-Key")
					continue
				}
				req.Header.Add(tt.headers[i], tt.headers[i+1])
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			ids := resp.Header.Values("X-Correlation-ID")
			if resp.StatusCode != tt.status || len(ids) != 1 || ids[0] == "" || tt.want != "" && ids[0] != tt.want {
				t.Fatalf("got %d with ids %q: %s; want %d and one id %q", resp.StatusCode, ids, text, tt.status, tt.want)
			}
			if tt.status < 400 {
				return
			}
			var p struct {
				ID string `json:"correlation_id"`
			}
			if err := json.Unmarshal(text, &p); err != nil || p.ID != ids[0] {
				t.Errorf("the problem has the id %q, the header %q: %s", p.ID, ids[0], text)
			}
		})
	}
}

// keyedGateway is a gateway with one route, which honors idempotency keys.
func keyedGateway(t *testing.T, address string, options idempotency.Options) *gateway.Gateway {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	retryer, err := forbear.New("payments", forbear.Policy{}, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{
		Logger: slog.New(slog.DiscardHandler),
		Routes: []gateway.Route{{
			Prefix: "/", Target: target, Retryer: retryer,
			Ingress: &gateway.Ingress{Store: &memstore.Idempotency{}, Options: options},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
