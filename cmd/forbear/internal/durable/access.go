package durable

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// caller is who makes a request. The zero value is one who needed no token, on this
// very machine, and may do everything.
type caller struct{ sqlstore.Token }

// callerKey is under which a request's context has its caller.
type callerKey struct{}

// callerOf returns who makes a request that was let in.
func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// errForbidden is 403: the token is good, and not for this.
var errForbidden = errors.New("forbidden")

// ErrNoToken refuses an API that other machines reach and that demands no token.
var ErrNoToken = errors.New("the delivery API listens beyond loopback and needs a token")

// authorize lets in who has the token of the command line or one of the store, and
// puts a caller into the request's context. Where there is neither, the request has to be addressed
// to this very machine: a name that a stranger controls may resolve to it.
func (s *Service) authorize(o Options, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + o.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get("Authorization")
		// Digests are compared, so that neither length nor a common prefix shows in
		// the timing.
		got := sha256.Sum256([]byte(sent))
		if o.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			next.ServeHTTP(w, r)
			return
		}
		if text, ok := strings.CutPrefix(sent, "Bearer "); ok {
			switch t, err := s.tokens.find(r.Context(), text); {
			case err == nil:
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{t})))
				return
			case !errors.Is(err, sqlstore.ErrTokenNotFound):
				s.fail(w, r, err)
				return
			}
		}
		switch demanded, err := s.tokens.any(r.Context()); {
		case o.Token == "" && err != nil:
			s.fail(w, r, err)
		case o.Token != "" || demanded:
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, r, http.StatusUnauthorized, "unauthorized", "the API token is missing, wrong or expired")
		case !loopback.Host(r.Host):
			writeProblem(w, r, http.StatusForbidden, "foreign-host", "without a token the API serves loopback names only")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// forApplications are the operations that a token of one application may call. Each
// of them keeps to what is of that application; what is not named here is for
// others.
var forApplications = []string{
	"POST /v1/messages",
	"GET /v1/messages",
	"POST /v1/messages/cancel",
	"POST /v1/messages/send-again",
	"GET /v1/messages/{id}",
	"POST /v1/messages/{id}/cancel",
	"POST /v1/messages/{id}/send-again",
	"GET /v1/endpoints",
	"POST /v1/endpoints",
	"GET /v1/endpoints/{id}",
	"PUT /v1/endpoints/{id}",
	"PATCH /v1/endpoints/{id}",
	"DELETE /v1/endpoints/{id}",
	"GET /v1/endpoints/{id}/stats",
	"GET /v1/stats",
	"POST /v1/endpoints/{id}/enable",
	"POST /v1/endpoints/{id}/disable",
	"POST /v1/endpoints/{id}/test-and-enable",
	"GET /v1/applications/{id}",
	"GET /v1/openapi.json",
}

// permit refuses an operation that the caller's token is not good for. What is of
// another application is not found, or its ids could be learned.
func (s *Service) permit(r *http.Request, route route) error {
	c := callerOf(r)
	if c.Scope == sqlstore.ScopeReadOnly && r.Method != http.MethodGet {
		return fmt.Errorf("%w: the token %q is read-only", errForbidden, c.Name)
	}
	if c.Application == "" {
		return nil
	}
	if !slices.Contains(forApplications, route.method+" "+route.path) {
		return fmt.Errorf("%w: the token %q is for the application %q, and this is not its own", errForbidden, c.Name, c.Application)
	}
	id := r.PathValue("id")
	switch {
	case strings.HasPrefix(route.path, "/v1/applications/"):
		if id != c.Application {
			return fmt.Errorf("application %q: %w", id, webhook.ErrNotFound)
		}
	case strings.HasPrefix(route.path, "/v1/endpoints/"):
		err := s.owns(r.Context(), c, id)
		if errors.Is(err, webhook.ErrNotFound) && route.method == http.MethodPut {
			return nil // it may be new; the store refuses one of another application
		}
		return err
	}
	return nil
}

// owns reports, as [webhook.ErrNotFound], an endpoint that is not of the caller's
// application.
func (s *Service) owns(ctx context.Context, c caller, endpoint string) error {
	if c.Application == "" {
		return nil
	}
	e, err := s.DB.Webhooks().Endpoint(ctx, endpoint)
	if err == nil && e.Application != c.Application {
		err = fmt.Errorf("endpoint %q: %w", endpoint, webhook.ErrNotFound)
	}
	return err
}

// confine puts the caller's application where a request names none, and refuses
// another one.
func (c caller) confine(application *string) error {
	switch {
	case c.Application == "" || *application == c.Application:
		return nil
	case *application == "":
		*application = c.Application
		return nil
	}
	return fmt.Errorf("%w: the token %q is for the application %q", errForbidden, c.Name, c.Application)
}
