package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway"
)

// locked is an upstream that lets one Authorization in, and keeps the list of
// those that it was sent.
type locked struct {
	mu   sync.Mutex
	good string
	seen []string
}

func (l *locked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := strings.Join(r.Header["Authorization"], "+")
	l.seen = append(l.seen, got)
	if got != l.good {
		http.Error(w, "locked", http.StatusUnauthorized)
	}
}

// sent returns the list, and begins a new one.
func (l *locked) sent() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.seen = nil }()
	return l.seen
}

// authorized puts a gateway with credentials before l.
func authorized(t *testing.T, l *locked, s gateway.CredentialSource, override bool) string {
	t.Helper()
	up := httptest.NewServer(l)
	t.Cleanup(up.Close)
	c, err := s.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, gateway.Route{
		Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick), Credentials: c, Override: override,
	})
}

// stored returns a source that reads a file, and what writes that file.
func stored(t *testing.T, value string) (s gateway.CredentialSource, write func(string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authorization")
	write = func(value string) {
		if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(value)
	return gateway.CredentialSource{Secret: gateway.Reference{File: path}}, write
}

func TestGatewayAddsItsCredentials(t *testing.T) {
	l := &locked{good: "Bearer file"}
	s, _ := stored(t, "Bearer file")
	address := authorized(t, l, s, false)
	if a := get(t, address+"/x"); a.StatusCode != http.StatusOK {
		t.Errorf("got %d after %q", a.StatusCode, l.sent())
	}

	t.Setenv("GATEWAY_TEST_AUTHORIZATION", "Bearer env")
	l = &locked{good: "Bearer env"}
	address = authorized(t, l, gateway.CredentialSource{Secret: gateway.Reference{Env: "GATEWAY_TEST_AUTHORIZATION"}}, false)
	if a := get(t, address+"/x"); a.StatusCode != http.StatusOK {
		t.Errorf("got %d after %q", a.StatusCode, l.sent())
	}
}

// TestCallersAuthorizationStands unless the configuration says otherwise: the
// gateway then neither replaces nor refreshes it.
func TestCallersAuthorizationStands(t *testing.T) {
	callers := http.Header{"Authorization": {"Bearer callers"}}
	for _, tc := range []struct {
		name     string
		override bool
		status   int
		sent     []string
	}{
		{"by default", false, 401, []string{"Bearer callers"}},
		{"override", true, 200, []string{"Bearer gateways"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &locked{good: "Bearer gateways"}
			s, _ := stored(t, "Bearer gateways")
			address := authorized(t, l, s, tc.override)
			a := call(t, http.MethodGet, address+"/x", callers, nil)
			if sent := l.sent(); a.StatusCode != tc.status || !slices.Equal(sent, tc.sent) {
				t.Errorf("got %d after %q, want %d after %q", a.StatusCode, sent, tc.status, tc.sent)
			}
		})
	}
}

// TestGatewayRefreshesOnce is R-9 at the gateway: one refresh after a 401, and
// no second one.
func TestGatewayRefreshesOnce(t *testing.T) {
	l := &locked{good: "Bearer old"}
	s, write := stored(t, "Bearer old")
	address := authorized(t, l, s, false)
	if a := get(t, address+"/x"); a.StatusCode != http.StatusOK {
		t.Fatalf("got %d", a.StatusCode)
	}
	l.sent()

	write("Bearer new")
	l.good = "Bearer new"
	a := get(t, address+"/x")
	if sent := l.sent(); a.StatusCode != http.StatusOK || !slices.Equal(sent, []string{"Bearer old", "Bearer new"}) {
		t.Errorf("rotated: got %d after %q", a.StatusCode, sent)
	}

	write("Bearer newer")
	l.good = "Bearer another"
	a = get(t, address+"/x")
	if sent := l.sent(); a.StatusCode != http.StatusUnauthorized || a.body != "locked\n" || !slices.Equal(sent, []string{"Bearer new", "Bearer newer"}) {
		t.Errorf("refused twice: got %d %q after %q", a.StatusCode, a.body, sent)
	}

	a = get(t, address+"/x") // the file has nothing fresher
	if sent := l.sent(); a.StatusCode != http.StatusUnauthorized || !slices.Equal(sent, []string{"Bearer newer"}) {
		t.Errorf("refused again: got %d after %q", a.StatusCode, sent)
	}
}

// TestFailedRefreshSendsNothingWeaker: no token, no request.
func TestFailedRefreshSendsNothingWeaker(t *testing.T) {
	for _, tc := range []struct{ name, contents, reason string }{
		{"gone", "", "refresh_failed"},
		{"another scheme", "Basic c2VjcmV0", "weaker_credential"},
		{"no scheme", "planted-secret", "refresh_failed"},
		{"two lines", "Bearer planted-secret\nX-Evil: 1", "refresh_failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &locked{good: "Bearer old"}
			s, write := stored(t, "Bearer old")
			address := authorized(t, l, s, false)
			if a := get(t, address+"/x"); a.StatusCode != http.StatusOK {
				t.Fatalf("got %d", a.StatusCode)
			}
			l.sent()
			l.good = "Bearer new"
			write(tc.contents)
			a := get(t, address+"/x")
			p := readProblem(t, a)
			if sent := l.sent(); a.StatusCode != http.StatusBadGateway || p.Reason != tc.reason || p.Type != "urn:forbear:problem:credentials" ||
				p.Attempts != 1 || !slices.Equal(sent, []string{"Bearer old"}) {
				t.Errorf("got %+v after %q", p, sent)
			}
			a = get(t, address+"/x") // a new call has no token to begin with
			p = readProblem(t, a)
			if sent := l.sent(); a.StatusCode != http.StatusBadGateway || p.Attempts != 0 || len(sent) > 0 {
				t.Errorf("the next call: got %+v after %q", p, sent)
			}
			if strings.Contains(a.body, "planted") {
				t.Errorf("the answer shows the secret: %s", a.body)
			}
		})
	}
}

func TestGatewayAsksForTokens(t *testing.T) {
	var mu sync.Mutex
	issued, refuse := 0, false
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		form, _ := io.ReadAll(r.Body)
		id, secret, _ := r.BasicAuth()
		if refuse || id != "checkout" || secret != "s3cret" || !strings.Contains(string(form), "scope=pay") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		issued++
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": []string{"", "one", "two"}[issued], "expires_in": 3600})
	}))
	t.Cleanup(tokens.Close)
	t.Setenv("GATEWAY_TEST_SECRET", "s3cret")
	l := &locked{good: "Bearer one"}
	address := authorized(t, l, gateway.CredentialSource{
		TokenURL: tokens.URL, ClientID: "checkout", ClientSecret: gateway.Reference{Env: "GATEWAY_TEST_SECRET"}, Scopes: []string{"pay"},
	}, false)
	for range 3 {
		if a := get(t, address+"/x"); a.StatusCode != http.StatusOK {
			t.Fatalf("got %d", a.StatusCode)
		}
	}
	if issued != 1 {
		t.Errorf("%d tokens for three calls, want 1", issued)
	}
	l.sent()
	l.good = "Bearer two"
	a := get(t, address+"/x")
	if sent := l.sent(); a.StatusCode != http.StatusOK || !slices.Equal(sent, []string{"Bearer one", "Bearer two"}) {
		t.Errorf("revoked: got %d after %q", a.StatusCode, sent)
	}
	l.good, refuse = "Bearer three", true
	if p := readProblem(t, get(t, address+"/x")); p.Status != http.StatusBadGateway || p.Reason != "refresh_failed" {
		t.Errorf("the token service refuses: got %+v", p)
	}
}

func TestFaultyCredentialSources(t *testing.T) {
	t.Setenv("GATEWAY_TEST_EMPTY", "")
	t.Setenv("GATEWAY_TEST_BARE", "planted")
	env := gateway.Reference{Env: "GATEWAY_TEST_EMPTY"}
	file := gateway.Reference{File: "/run/secrets/x"}
	for want, s := range map[string]gateway.CredentialSource{
		"secret needs":                   {},
		"secret needs {env":              {Secret: gateway.Reference{Env: "A", File: "b"}},
		"GATEWAY_TEST_EMPTY is empty":    {Secret: env},
		"a whole Authorization value":    {Secret: gateway.Reference{Env: "GATEWAY_TEST_BARE"}},
		"needs client_id and client_sec": {TokenURL: "https://auth.test/token", ClientSecret: file},
		"and excludes secret":            {TokenURL: "https://auth.test/token", ClientID: "a", ClientSecret: file, Secret: file},
		"is not https":                   {TokenURL: "http://auth.test/token", ClientID: "a", ClientSecret: file},
		"is not a URL":                   {TokenURL: "https://user:planted@auth.test/", ClientID: "a", ClientSecret: file},
	} {
		_, err := s.Credentials()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%+v: got %v, want %q", s, err, want)
		}
	}
	if _, err := (gateway.CredentialSource{TokenURL: "http://127.0.0.1:9/token", ClientID: "a", ClientSecret: file}).Credentials(); err != nil {
		t.Errorf("a token service on this machine: %v", err)
	}
}

// TestRoutesShareConnections whether or not they have credentials.
func TestRoutesShareConnections(t *testing.T) {
	wrapped := 0
	r := retryer(t, quick)
	s, _ := stored(t, "Bearer x")
	c, err := s.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	target := parse(t, "http://127.0.0.1:1")
	_, err = gateway.New(gateway.Config{
		Wrap: func(next http.RoundTripper) http.RoundTripper { wrapped++; return next },
		Routes: []gateway.Route{
			{Prefix: "/a", Target: target, Retryer: r},
			{Prefix: "/b", Target: target, Retryer: r, Credentials: c},
			{Prefix: "/c", Target: target, Retryer: r, Credentials: c, Override: true},
			{Prefix: "/d", Target: target, Retryer: retryer(t, forbear.Policy{})},
		},
	})
	if err != nil || wrapped != 2 {
		t.Errorf("%d transports for two dependencies (%v)", wrapped, err)
	}
}
