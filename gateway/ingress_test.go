package gateway_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

const ingressKey = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"

// ingress puts a gateway with idempotency before a service that counts its
// effects.
func ingress(t *testing.T, timeout time.Duration, service http.HandlerFunc, change ...func(*idempotency.Options)) (post func() (status int, body string, replayed bool), effects *atomic.Int64, store *memstore.Idempotency) {
	t.Helper()
	effects = &atomic.Int64{}
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		effects.Add(1) // committed, whatever becomes of the answer
		service(w, r)
	}))
	up.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	up.Start()
	t.Cleanup(up.Close)
	target, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	retryer, err := forbear.New("payments", forbear.Policy{}, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	store = &memstore.Idempotency{}
	options := idempotency.Options{Scope: gateway.PrincipalHeader("X-Principal")}
	for _, c := range change {
		c(&options)
	}
	g, err := gateway.New(gateway.Config{
		Logger: slog.New(slog.DiscardHandler),
		Routes: []gateway.Route{{
			Prefix: "/", Target: target, Retryer: retryer,
			Ingress: &gateway.Ingress{Store: store, Timeout: timeout, Options: options},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(g)
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front.Start()
	t.Cleanup(front.Close)
	return func() (int, string, bool) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/pay", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Principal", "t1")
		req.Header.Set("Idempotency-Key", ingressKey)
		req.GetBody = nil // one send each
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			return 0, err.Error(), false
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), resp.Header.Get("Idempotent-Replayed") == "true"
	}, effects, store
}

func TestIngressReplays(t *testing.T) {
	post, effects, _ := ingress(t, 0, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "paid")
	})
	for i := range 3 {
		if status, body, replayed := post(); status != 201 || body != "paid" || replayed != (i > 0) {
			t.Errorf("%d: got %d %s, replayed %v", i, status, body, replayed)
		}
	}
	if effects.Load() != 1 {
		t.Errorf("%d effects", effects.Load())
	}
}

// TestIngressHoldsWhatBrokeOff whatever the options say of the status that follows.
func TestIngressHoldsWhatBrokeOff(t *testing.T) {
	post, effects, _ := ingress(t, 0, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}, func(o *idempotency.Options) {
		o.Disposition = func(int) idempotency.Disposition { return idempotency.Retry }
	})
	post()
	if status, body, _ := post(); status != 409 || effects.Load() != 1 {
		t.Errorf("again: %d %s, %d effects; want 409 and 1", status, body, effects.Load())
	}
}

// The effect is committed and then the answer is lost: it is not done again.
func TestIngressUnknownOutcomeIsNotRunAgain(t *testing.T) {
	cut := func(w http.ResponseWriter, head string) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = buf.WriteString(head)
		_ = buf.Flush()
		_ = conn.Close()
	}
	for name, tt := range map[string]struct {
		service http.HandlerFunc
		first   int
	}{
		"connection cut": {func(w http.ResponseWriter, _ *http.Request) { cut(w, "") }, 502},
		"cut in the answer": {func(w http.ResponseWriter, _ *http.Request) {
			cut(w, "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf")
		}, 502},
		"cut in a chunk": {func(w http.ResponseWriter, _ *http.Request) {
			cut(w, "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nX-Paid: yes\r\n\r\n5\r\nhalf!\r\n50\r\nof")
		}, 502},
		"timeout in the answer": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, "half")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, 504},
		"its own 504": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(504) }, 504},
		"its own 502": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, 502},
		"timeout":     {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 504},
	} {
		t.Run(name, func(t *testing.T) {
			post, effects, store := ingress(t, 300*time.Millisecond, tt.service)
			if status, body, _ := post(); status != tt.first || strings.Contains(body, "half") ||
				!strings.HasPrefix(name, "its own") && !strings.Contains(body, `"outcome":"unknown"`) {
				t.Errorf("first: %d %s, want %d", status, body, tt.first)
			}
			for range 2 {
				if status, body, _ := post(); status != 409 || !strings.Contains(body, "/outcome-unknown") {
					t.Errorf("again: %d %s", status, body)
				}
			}
			if effects.Load() != 1 {
				t.Errorf("%d effects, want 1", effects.Load())
			}
			list, err := store.List(t.Context(), idempotency.Filter{State: idempotency.Held})
			if err != nil || len(list) != 1 {
				t.Errorf("an operator sees %v, %v", list, err)
			}
		})
	}
}

func TestIngressReleasesWhatWasNotDone(t *testing.T) {
	var n atomic.Int64
	post, effects, _ := ingress(t, 0, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			w.WriteHeader(503) // its own word
			return
		}
		w.WriteHeader(201)
	})
	if status, _, _ := post(); status != 503 {
		t.Errorf("got %d", status)
	}
	if status, _, replayed := post(); status != 201 || replayed || effects.Load() != 2 {
		t.Errorf("got %d, %v, %d", status, replayed, effects.Load())
	}
}

func TestIngressRefusedConnectionIsReleased(t *testing.T) {
	retryer := forbear.Must(forbear.New("gone", forbear.Policy{}, forbear.WithoutLog()))
	store := &memstore.Idempotency{}
	dead := httptest.NewServer(http.NotFoundHandler())
	target, _ := url.Parse(dead.URL)
	dead.Close()
	g, err := gateway.New(gateway.Config{Logger: slog.New(slog.DiscardHandler), Routes: []gateway.Route{{
		Prefix: "/", Target: target, Retryer: retryer, Ingress: &gateway.Ingress{Store: store, Options: idempotency.Options{Scope: idempotency.SingleTenant()}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", ingressKey)
		g.ServeHTTP(w, r)
		if w.Code != 502 || !strings.Contains(w.Body.String(), `"outcome":"unsent"`) {
			t.Errorf("got %d %s, want the key released each time", w.Code, w.Body)
		}
	}
	if _, err := gateway.New(gateway.Config{Routes: []gateway.Route{{Prefix: "/", Target: target, Retryer: retryer, Ingress: &gateway.Ingress{Store: store}}}}); err == nil {
		t.Error("a route without a scope was accepted")
	}
}

func TestJWT(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(alg string, claims map[string]any) string {
		enc := func(v any) string {
			b, _ := json.Marshal(v)
			return base64.RawURLEncoding.EncodeToString(b)
		}
		signed := enc(map[string]string{"alg": alg}) + "." + enc(claims)
		var sig []byte
		switch alg {
		case "HS256":
			mac := hmac.New(sha256.New, public)
			mac.Write([]byte(signed))
			sig = mac.Sum(nil)
		case "EdDSA", "RS256":
			sig = ed25519.Sign(private, []byte(signed))
		}
		return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
	}
	in, past := float64(time.Now().Add(time.Hour).Unix()), float64(time.Now().Add(-time.Hour).Unix())
	good := map[string]any{"sub": "ann", "exp": in, "aud": []string{"x", "pay"}}
	keys := []gateway.VerifyKey{{Key: public}}
	pay, ed := gateway.JWT{Claim: "sub", Keys: keys, Audience: "pay"}, gateway.JWT{Claim: "sub", Keys: keys}
	for name, tt := range map[string]struct {
		jwt   gateway.JWT
		token string
		want  string
	}{
		"audience":        {pay, token("EdDSA", good), "ann"},
		"EdDSA":           {ed, token("EdDSA", good), "ann"},
		"alg none":        {ed, token("none", good), ""},
		"other algorithm": {ed, token("HS256", good), ""},
		"other name":      {ed, token("RS256", good), ""}, // with a signature that the key accepts
		"forged":          {ed, token("EdDSA", good)[:20] + token("EdDSA", map[string]any{"sub": "bob", "exp": in})[20:] + "x", ""},
		"expired":         {ed, token("EdDSA", map[string]any{"sub": "ann", "exp": past}), ""},
		"no end":          {ed, token("EdDSA", map[string]any{"sub": "ann"}), ""},
		"not yet":         {ed, token("EdDSA", map[string]any{"sub": "ann", "exp": in, "nbf": in}), ""},
		"nbf is a text":   {ed, token("EdDSA", map[string]any{"sub": "ann", "exp": in, "nbf": "x"}), ""},
		"nbf is null":     {ed, token("EdDSA", map[string]any{"sub": "ann", "exp": in, "nbf": nil}), ""},
		"nbf is far off":  {ed, token("EdDSA", map[string]any{"sub": "ann", "exp": in, "nbf": 1e300}), ""},
		"nbf is over":     {ed, token("EdDSA", map[string]any{"sub": "ann", "exp": in, "nbf": past}), "ann"},
		"with an issuer":  {ed, token("EdDSA", map[string]any{"sub": "ann lee", "iss": "https://a.test", "exp": in}), "https://a.test ann%20lee"},
		"of two words":    {ed, token("EdDSA", map[string]any{"sub": "a b", "exp": in}), "a%20b"},
		"other audience":  {pay, token("EdDSA", map[string]any{"sub": "ann", "exp": in, "aud": "ship"}), ""},
		"no claim":        {ed, token("EdDSA", map[string]any{"exp": in}), ""},
		"no token":        {ed, "", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Authorization", "Bearer "+tt.token)
		if got, err := tt.jwt.Principal(r); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, tt.want)
		}
	}
}
