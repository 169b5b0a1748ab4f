package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// vault is a place for secrets that tests fill and empty.
type vault struct {
	mu      sync.Mutex
	secrets map[string]string
	asked   int
}

func (v *vault) get(_ context.Context, ref string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	value, ok := v.secrets[ref]
	if !ok {
		return "", errors.New("the vault has no such secret")
	}
	return value, nil
}

func (v *vault) set(ref, value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.secrets == nil {
		v.secrets = map[string]string{}
	}
	v.secrets[ref] = value
}

func (v *vault) remove(ref string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.secrets, ref)
}

func dispatcher(t *testing.T, s *memstore.Store, v *vault) *dispatch.Dispatcher {
	t.Helper()
	d, err := dispatch.New(dispatch.Config{Store: s, Alerts: s, Logger: quiet, Secrets: v.get, Transport: &receiver{respond: always(200)}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What lists show cannot be put: a placeholder in the place of a value would
// replace it.
func TestPlaceholdersAreRefused(t *testing.T) {
	v := &vault{}
	v.set("env:SIGN", webhook.NewSecret())
	v.set("env:AUTH", "Bearer x")
	s := &memstore.Store{}
	d := dispatcher(t, s, v)
	good := func() webhook.Endpoint {
		return webhook.Endpoint{
			ID: "a", URL: "https://example.com/hook?key=1", Secrets: []string{"env:SIGN", webhook.NewSecret()},
			Headers: []webhook.Header{{Name: "X-Team", Value: "blue"}}, Auth: &webhook.Auth{Secret: "env:AUTH"},
		}
	}
	token := func(e *webhook.Endpoint) *webhook.Auth {
		e.Auth = &webhook.Auth{TokenURL: "https://token.example.com/?tenant=1", ClientID: "c", ClientSecret: "env:AUTH"}
		return e.Auth
	}
	for _, c := range []struct {
		name   string
		field  string // that the error names; empty: it is taken
		change func(*webhook.Endpoint)
	}{
		{"as it should be", "", func(*webhook.Endpoint) {}},
		{"a secret", "secrets[1]", func(e *webhook.Endpoint) { e.Secrets[1] = deadletter.Masked }},
		{"a header", `the value of header "X-Team"`, func(e *webhook.Endpoint) { e.Headers[0].Value = deadletter.Masked }},
		{"the query", "the query of url", func(e *webhook.Endpoint) { e.URL = "https://example.com/hook?***" }},
		{"in the query", "the query of url", func(e *webhook.Endpoint) { e.URL = "https://example.com/hook?***&a=1" }},
		{"stars in the path", "", func(e *webhook.Endpoint) { e.URL = "https://example.com/***/hook" }},
		{"the authorization", "auth.secret", func(e *webhook.Endpoint) { e.Auth.Secret = deadletter.Masked }},
		{"client credentials", "", func(e *webhook.Endpoint) { token(e) }},
		{"the client's id", "auth.client_id", func(e *webhook.Endpoint) { token(e).ClientID = deadletter.Masked }},
		{"the client's secret", "auth.client_secret", func(e *webhook.Endpoint) { token(e).ClientSecret = deadletter.Masked }},
		{"the token's query", "the query of auth.token_url", func(e *webhook.Endpoint) { token(e).TokenURL = "https://token.example.com/?***" }},
	} {
		e := good()
		c.change(&e)
		_, err := d.PutEndpoint(t.Context(), e)
		if c.field == "" && err != nil || c.field != "" && (!errors.Is(err, webhook.ErrInvalid) || !strings.Contains(err.Error(), c.field+" is ***") || !strings.Contains(err.Error(), "PATCH")) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	list, err := d.Endpoints(t.Context())
	if err != nil || len(list) != 1 || list[0].Version != 3 {
		t.Fatalf("got %+v, %v: want what was taken, three times", list, err)
	}
	shown := fmt.Sprintf("%+v %+v", list[0], *list[0].Auth)
	if strings.Contains(shown, "whsec_") || strings.Contains(shown, "blue") || strings.Contains(shown, "tenant=1") || list[0].Secrets[0] != "env:SIGN" || list[0].Secrets[1] != "***" {
		t.Errorf("shown is %s", shown)
	}
	if stored, _ := s.Endpoints(t.Context()); stored[0].Auth.TokenURL != "https://token.example.com/?tenant=1" || stored[0].Headers[0].Value != "blue" {
		t.Errorf("masking changed what is stored: %+v", stored[0])
	}
	if _, err := d.PutEndpoint(t.Context(), list[0]); !errors.Is(err, webhook.ErrInvalid) {
		t.Errorf("put as it is shown: got %v", err)
	}
}

// A reference that names nothing, or nothing to sign with, is refused when the
// endpoint is put, and no value is shown.
func TestDanglingReferencesAreRefused(t *testing.T) {
	v := &vault{}
	v.set("env:SIGN", webhook.NewSecret())
	v.set("env:PLAIN", "planted-plain-text")
	v.set("env:EMPTY", "")
	d := dispatcher(t, &memstore.Store{}, v)
	auth := func(secret string) *webhook.Auth { return &webhook.Auth{Secret: secret} }
	token := func(secret string) *webhook.Auth {
		return &webhook.Auth{TokenURL: "https://token.example.com/", ClientID: "c", ClientSecret: secret}
	}
	for _, c := range []struct {
		name    string
		secrets []string
		auth    *webhook.Auth
		want    []string // in the error; nil: it is taken
	}{
		{"all there", []string{"env:SIGN"}, auth("env:PLAIN"), nil},
		{"client credentials", nil, token("env:PLAIN"), nil},
		{"no such secret", []string{"env:SIGN", "env:GONE"}, nil, []string{"secrets[1]", "env:GONE"}},
		{"an empty one", []string{"env:EMPTY"}, nil, []string{"secrets[0]", "env:EMPTY"}},
		{"nothing to sign with", []string{"env:PLAIN"}, nil, []string{"secrets[0]", "env:PLAIN"}},
		{"no authorization", nil, auth("env:GONE"), []string{"auth", "env:GONE"}},
		{"an empty authorization", nil, auth("env:EMPTY"), []string{"auth", "env:EMPTY"}},
		{"no client secret", nil, token("file:gone"), []string{"auth", "file:gone"}},
		{"all of them at once", []string{"env:A", "env:B"}, auth("env:C"), []string{"env:A", "env:B", "env:C"}},
	} {
		_, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/", Secrets: c.secrets, Auth: c.auth})
		if (err == nil) != (c.want == nil) || err != nil && !errors.Is(err, webhook.ErrInvalid) {
			t.Errorf("%s: got %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") {
				t.Errorf("%s: got %v, want it to name %s and show no value", c.name, err, want)
			}
		}
	}
}

// The state of an endpoint is what the store says, whatever is put.
func TestPutKeepsTheState(t *testing.T) {
	d := dispatcher(t, &memstore.Store{}, &vault{})
	e := webhook.Endpoint{ID: "a", URL: "https://example.com/", State: webhook.Disabled, Held: "made up"}
	got, err := d.PutEndpoint(t.Context(), e)
	if err != nil || got.State != webhook.Enabled || got.Held != "" {
		t.Fatalf("a new one: %+v, %v", got, err)
	}
	if err := d.Disable(t.Context(), "a", "test"); err != nil {
		t.Fatal(err)
	}
	e.State = webhook.Enabled
	if got, err = d.PutEndpoint(t.Context(), e); err != nil || got.State != webhook.Disabled || got.Reason != "test" || got.Since.IsZero() {
		t.Errorf("a disabled one: %+v, %v", got, err)
	}
	got.Version = 1
	if _, err := d.PutEndpoint(t.Context(), got); !errors.Is(err, webhook.ErrVersion) {
		t.Errorf("an older version: got %v", err)
	}
	got.Version = -2
	if _, err := d.PutEndpoint(t.Context(), got); !errors.Is(err, webhook.ErrInvalid) {
		t.Errorf("no version at all: got %v", err)
	}
}

// Each of many processes changes a field of its own, at the same time: all of
// the changes are there.
func TestUpdatesDoNotLoseEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		const processes = 24
		e := webhook.Endpoint{ID: "a", URL: "https://example.com/"}
		if _, err := dispatcher(t, s, &vault{}).PutEndpoint(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range processes {
			d := dispatcher(t, s, &vault{})
			wg.Go(func() {
				_, err := d.UpdateEndpoint(t.Context(), "a", func(e *webhook.Endpoint) error {
					e.Headers = append(e.Headers, webhook.Header{Name: fmt.Sprint("X-", i), Value: "1"})
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		list, _ := s.Endpoints(t.Context())
		names := map[string]bool{}
		for _, h := range list[0].Headers {
			names[http.CanonicalHeaderKey(h.Name)] = true
		}
		if len(names) != processes || list[0].Version != processes+1 {
			t.Errorf("%d changes of %d are there, at version %d", len(names), processes, list[0].Version)
		}
	})
	d := dispatcher(t, &memstore.Store{}, &vault{})
	if _, err := d.UpdateEndpoint(t.Context(), "none", func(*webhook.Endpoint) error { return nil }); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("an unknown endpoint: got %v", err)
	}
}

// A client's secret crosses the internet under TLS alone: http is for what is allowed
// inside, as the addresses of endpoints are not.
func TestTokensInClearStayInside(t *testing.T) {
	v := &vault{}
	v.set("env:CLIENT", "planted")
	for _, c := range []struct {
		address string
		inside  bool // that 127.0.0.0/8 is allowed
		want    error
	}{
		{"https://token.example.com/", false, nil},
		{"https://token.example.com/", true, nil},
		{"http://127.0.0.1:9/token", true, nil},
		{"http://localhost:9/token", true, nil},
		{"http://127.0.0.1:9/token", false, webhook.ErrInvalid},
		{"http://8.8.8.8/token", true, webhook.ErrBlocked},
		{"http://[2606:2800:220:1::1]/token", true, webhook.ErrBlocked},
		{"http://10.0.0.1/token", true, webhook.ErrBlocked},
		{"http://token.example.com:0/", true, webhook.ErrInvalid},
	} {
		cfg := dispatch.Config{Store: &memstore.Store{}, Alerts: &memstore.Store{}, Logger: quiet, Secrets: v.get}
		if c.inside {
			cfg.Guard.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		d, err := dispatch.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/", Auth: &webhook.Auth{TokenURL: c.address, ClientID: "c", ClientSecret: "env:CLIENT"}})
		if !errors.Is(err, c.want) {
			t.Errorf("%s, inside %v: got %v, want %v", c.address, c.inside, err, c.want)
		}
	}
}

// Tests count against the rates of the endpoint and of its application: they are sent past
// the queue, which keeps to the former.
func TestTestsKeepTheRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		d := dispatcher(t, s, &vault{})
		if _, err := d.PutApplication(t.Context(), webhook.Application{ID: "acme", Rate: 2}); err != nil {
			t.Fatal(err)
		}
		for _, e := range []webhook.Endpoint{
			{ID: "slow", URL: "https://example.com/", Rate: 1},
			{ID: "a", URL: "https://example.com/", Application: "acme"},
			{ID: "b", URL: "https://example.com/", Application: "acme"},
			{ID: "free", URL: "https://example.com/"},
		} {
			if _, err := d.PutEndpoint(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		test := func(id string) (err error) {
			_, err = d.Test(t.Context(), id, "", nil, webhook.ByTenant)
			return err
		}
		for _, c := range []struct {
			id   string
			ok   bool
			wait time.Duration // before
		}{
			{"slow", true, 0},
			{"slow", false, 0},
			{"slow", true, time.Second},
			{"slow", false, 0},
			{"a", true, 0},
			{"b", true, 0},
			{"b", false, 0},
			{"a", false, 0},
			{"a", true, time.Second / 2},
		} {
			time.Sleep(c.wait)
			err := test(c.id)
			limit, _ := errors.AsType[*dispatch.RateError](err)
			if c.ok != (err == nil) || !c.ok && (limit == nil || limit.RetryAfter <= 0 || limit.RetryAfter > time.Second) {
				t.Errorf("%s: got %v, want it sent %v", c.id, err, c.ok)
			}
		}
		// What the tests took is gone for messages as well.
		if _, err := d.Accept(t.Context(), webhook.Message{Application: "acme", Body: []byte("{}")}); !errors.Is(err, dispatch.ErrRate) {
			t.Errorf("a message: got %v", err)
		}
		for range 100 {
			if err := test("free"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if _, err := d.TestAndEnable(t.Context(), "slow", webhook.ByOperator); err != nil {
			t.Errorf("after a while: got %v", err)
		}
		if _, err := d.TestAndEnable(t.Context(), "slow", webhook.ByOperator); !errors.Is(err, dispatch.ErrRate) {
			t.Errorf("enabling: got %v", err)
		}
	})
}

// What a tenant sees of a token that could not be fetched has no address of the inside.
func TestInnerAddressesAreNotShown(t *testing.T) {
	s, v := &memstore.Store{}, &vault{}
	v.set("env:CLIENT", "planted")
	d, err := dispatch.New(dispatch.Config{Store: s, Alerts: s, Logger: quiet, Secrets: v.get})
	if err != nil {
		t.Fatal(err)
	}
	// As of a name that resolves to it: the address itself would be refused.
	e := webhook.Endpoint{ID: "a", URL: "https://example.com/", Auth: &webhook.Auth{TokenURL: "https://127.0.0.1:1/", ClientID: "c", ClientSecret: "env:CLIENT"}}
	if _, err := s.PutEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := d.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := d.Test(t.Context(), "a", "", nil, webhook.ByTenant)
	if err != nil || res.ErrorType != "credential" || !strings.Contains(res.Response, webhook.ErrBlocked.Error()) || strings.Contains(res.Response, "127.0.0.1") {
		t.Errorf("got %+v, %v", res, err)
	}
	shown, err := d.Endpoint(t.Context(), "a")
	if err != nil || strings.Contains(shown.Held, "127.0.0.1") {
		t.Errorf("held is %q, %v", shown.Held, err)
	}
}
