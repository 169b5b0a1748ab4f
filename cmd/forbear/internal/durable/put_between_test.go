package durable

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// between is a store in which another write comes right before the next one of an
// endpoint.
type between struct {
	store.Store

	write atomic.Pointer[func()]
}

func (s *between) PutEndpoint(ctx context.Context, e webhook.Endpoint) (webhook.Endpoint, error) {
	if write := s.write.Swap(nil); write != nil {
		(*write)()
	}
	return s.Store.PutEndpoint(ctx, e)
}

// What an operator writes between a tenant's check and the tenant's write is not undone:
// what was checked is what is replaced.
func TestPutChecksWhatItReplaces(t *testing.T) {
	t.Setenv(SecretPrefix+"PARTNER", webhook.NewSecret())
	s, err := New(t.Context(), Options{Database: filepath.Join(t.TempDir(), "forbear.db"), Token: "the operator's own token", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	store := &between{Store: s.DB.Webhooks()}
	if s.Dispatcher, err = dispatch.New(dispatch.Config{Store: store, Alerts: s.DB.DeadLetters(), Secrets: dispatch.LocalSecrets(SecretPrefix, ""), Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	s.Handler = s.handler(Options{Token: "the operator's own token"}) // of that dispatcher
	root := "Bearer the operator's own token"
	call(t, s, "PUT", "/v1/applications/acme", `{}`, "Authorization", root)
	acme := token(t, s, `{"name":"acme","scope":"application","application":"acme"}`, "Authorization", root)
	auth := func(e *webhook.Endpoint) { e.Auth = &webhook.Auth{Secret: "env:PARTNER"} }
	own := `,"secrets":["` + webhook.NewSecret() + `"]`
	for _, c := range []struct {
		name, method, body string
		header             []string
		operator           func(*webhook.Endpoint)
		want               int
	}{
		{"a credential", "PUT", `{"url":"https://example.com/evil"}`, nil, auth, 403},
		{"and secrets of the tenant's", "PUT", `{"url":"https://example.com/evil"` + own + `}`, nil, auth, 403},
		{"under a condition", "PUT", `{"url":"https://example.com/evil"}`, []string{"If-Match", "*"}, auth, 403},
		{"by PATCH", "PATCH", `{"url":"https://example.com/evil"}`, nil, auth, 403},
		{"a secret", "PUT", `{"url":"https://example.com/evil"}`, nil, func(e *webhook.Endpoint) { e.Secrets = []string{"env:PARTNER"} }, 403},
		{"a bound", "PUT", `{"url":"https://example.com/evil"}`, nil, func(e *webhook.Endpoint) { e.Concurrency = 1 }, 403},
		{"what is the tenant's, too", "PUT", `{"url":"https://example.com/evil"}`, nil, func(e *webhook.Endpoint) { e.Rate = 3 }, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, v := call(t, s, "PUT", "/v1/endpoints/e", `{"url":"https://example.com/","application":"acme"`+own+`}`, "Authorization", root); status != 200 {
				t.Fatalf("%d %v", status, v)
			}
			defer call(t, s, "DELETE", "/v1/endpoints/e", "", "Authorization", root)
			write := func() {
				e, err := store.Store.Endpoint(context.Background(), "e")
				if err == nil {
					c.operator(&e)
					_, err = store.Store.PutEndpoint(context.Background(), e)
				}
				if err != nil {
					t.Error(err)
				}
			}
			store.write.Store(&write)
			status, v := call(t, s, c.method, "/v1/endpoints/e", c.body, append([]string{"Authorization", acme}, c.header...)...)
			e := endpointOf(t, s, "e")
			if status != c.want || (e.URL == "https://example.com/evil") != (c.want == 200) {
				t.Errorf("got %d %v, want %d; stored is %+v", status, v, c.want, e)
			}
		})
	}
}

// An endpoint that is added while it is put, or deleted, is found either way.
func TestPutWhileOthersAddAndDelete(t *testing.T) {
	s, err := New(t.Context(), Options{Database: filepath.Join(t.TempDir(), "forbear.db"), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	store := &between{Store: s.DB.Webhooks()}
	if s.Dispatcher, err = dispatch.New(dispatch.Config{Store: store, Alerts: s.DB.DeadLetters(), Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	add := func() {
		if _, err := store.Store.PutEndpoint(context.Background(), webhook.Endpoint{ID: "a", URL: "https://example.com/other", Secrets: []string{webhook.NewSecret()}}); err != nil {
			t.Error(err)
		}
	}
	store.write.Store(&add)
	if status, v := call(t, s, "PUT", "/v1/endpoints/a", plain); status != 200 || v["version"] != 2.0 {
		t.Errorf("added meanwhile: %d %v", status, v)
	}
	remove := func() {
		if err := store.Store.DeleteEndpoint(context.Background(), "a", 0); err != nil {
			t.Error(err)
		}
	}
	store.write.Store(&remove)
	if status, v := call(t, s, "PUT", "/v1/endpoints/a", plain); status != 200 {
		t.Errorf("deleted meanwhile: %d %v", status, v)
	}
	if status, v := call(t, s, "PUT", "/v1/endpoints/a", plain, "If-None-Match", "*"); status != 412 {
		t.Errorf("it is there: %d %v", status, v)
	}
}
