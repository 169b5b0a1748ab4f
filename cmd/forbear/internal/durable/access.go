package durable

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/loopback"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// caller makes a request. The zero value is a caller on this very machine that needed no
// token, and may do everything.
type caller struct{ sqlstore.Token }

// callerKey is under which a request's context has its caller.
type callerKey struct{}

// callerOf returns the caller of a request that was let in.
func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// bearer returns the token that a request brings. The scheme's case does not count
// (RFC 9110 section 11.1).
func bearer(r *http.Request) (text string, ok bool) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return text, strings.EqualFold(scheme, "Bearer") && text != ""
}

// as returns a request with its caller.
func as(r *http.Request, t sqlstore.Token) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{t}))
}

// rootToken is how the audit names the token of the command line.
const rootToken = "api-token"

// errForbidden is 403: the token is good, and not for this.
var errForbidden = errors.New("forbidden")

// ErrNoToken refuses an API that other machines reach and that demands no token.
var ErrNoToken = errors.New("the delivery API listens beyond loopback and needs a token")

// refusedToken is why a caller gets 401.
const refusedToken = "the API token is missing, wrong or expired: send Authorization: Bearer with a token that forbear token create made, or set FORBEAR_API_TOKEN for the commands"

// authorize lets in callers with the token of the command line or one of the store, and
// puts them into the request's context. Where there is neither, the request has to be
// addressed to this very machine: a name that a stranger controls may resolve to it. An API
// that other machines reach requires a token even after the last one was revoked.
func (s *Service) authorize(o Options, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(o.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := bearer(r)
		// Digests are compared, so that neither length nor a common prefix shows in
		// the timing.
		got := sha256.Sum256([]byte(text))
		if o.Token != "" && ok && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			next.ServeHTTP(w, as(r, sqlstore.Token{Name: rootToken, Scope: sqlstore.ScopeAdmin}))
			return
		}
		if ok {
			switch t, err := s.tokens.find(r.Context(), text); {
			case err == nil:
				next.ServeHTTP(w, as(r, t))
				return
			case !errors.Is(err, sqlstore.ErrTokenNotFound):
				s.fail(w, r, err)
				return
			}
		}
		switch demanded, err := s.tokens.any(r.Context()); {
		case o.Token == "" && !o.Open && err != nil:
			s.fail(w, r, err)
		case o.Token != "" || o.Open || demanded:
			s.refused(r, http.StatusUnauthorized, refusedToken)
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, r, http.StatusUnauthorized, "unauthorized", refusedToken)
		case !loopback.Host(r.Host) || forwarded(r):
			s.refused(r, http.StatusForbidden, "without a token, under a name that is not this machine's, or through a proxy")
			writeProblem(w, r, http.StatusForbidden, "foreign-host", "without a token, the API serves only loopback names, and no proxy: make a token with forbear token create")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// forwarded reports whether a request looks as if a proxy had passed it on from elsewhere:
// one before a loopback address would publish the API. Many say so in a header. One that
// does not may be known by HTTP/1.0, which nginx has spoken unless told otherwise, and
// clients do not.
func forwarded(r *http.Request) bool {
	for name := range r.Header {
		if slices.Contains(proxyHeaders, name) || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}

// proxyHeaders are those by which proxies and networks of them say for whom they ask.
var proxyHeaders = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For", "X-Envoy-External-Address",
	"True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "Cdn-Loop",
}

// permit refuses an operation that the caller's token is not good for. What is of
// another application is not found, or its ids could be learned.
func (s *Service) permit(r *http.Request, route route) error {
	c := callerOf(r)
	if c.Scope == sqlstore.ScopeReadOnly && route.method != http.MethodGet {
		return fmt.Errorf("%w: the token %q is read-only: use one of scope application or admin", errForbidden, c.Name)
	}
	if c.Application == "" {
		return nil
	}
	if c.Suspended && route.method != http.MethodGet {
		a, err := s.DB.Webhooks().Application(r.Context(), c.Application)
		if err = cmp.Or(err, a.CheckSuspended()); err != nil {
			return err
		}
	}
	if !route.tenants {
		return fmt.Errorf("%w: the token %q is only for application %q: this needs one of scope admin", errForbidden, c.Name, c.Application)
	}
	id := r.PathValue("id")
	switch {
	case strings.HasPrefix(route.path, "/v1/applications/"):
		if id != c.Application {
			return fmt.Errorf("application %q: %w", id, webhook.ErrNotFound)
		}
	case strings.HasPrefix(route.path, "/v1/endpoints/"):
		if route.method == http.MethodPut {
			return s.free(r.Context(), c, id)
		}
		return s.owns(r.Context(), c, id)
	}
	return nil
}

// free refuses the id of another application's endpoint: that it is taken is all that
// can be learned of it. Of those that were deleted the store knows.
func (s *Service) free(ctx context.Context, c caller, id string) error {
	switch e, err := s.endpoint(ctx, id); {
	case errors.Is(err, webhook.ErrNotFound):
		return nil
	case err == nil && e.Application != c.Application:
		return fmt.Errorf("endpoint %q: %w", id, webhook.ErrTaken)
	default:
		return err
	}
}

// owns reports, as [webhook.ErrNotFound], an endpoint that is not of the caller's
// application.
func (s *Service) owns(ctx context.Context, c caller, endpoint string) error {
	if c.Application == "" {
		return nil
	}
	e, err := s.endpoint(ctx, endpoint)
	if err == nil && e.Application != c.Application {
		err = fmt.Errorf("endpoint %q: %w", endpoint, webhook.ErrNotFound)
	}
	return err
}

// ownEndpoints returns the endpoints of the caller's application among those that are
// named, or all of them when none is. Of others it says nothing, as of those that there
// are not.
func (s *Service) ownEndpoints(ctx context.Context, c caller, named []string) (own []string, err error) {
	list, _, err := s.DB.Webhooks().EndpointPage(ctx, store.EndpointFilter{Application: c.Application}, "", maxPage) // none has more
	for _, e := range list {
		if len(named) == 0 || slices.Contains(named, e.ID) {
			own = append(own, e.ID)
		}
	}
	return own, err
}

// mayWrite refuses what an application's token may not write of an endpoint; before is
// what is stored, or nil. References name secrets of the whole installation: an
// endpoint with one of them is the operator's, and so is where it is sent to. How
// much of the sender's room an endpoint takes is the operator's as well.
func (c caller) mayWrite(before *webhook.Endpoint, e *webhook.Endpoint) error {
	if c.Application == "" {
		return nil
	}
	if before == nil {
		before = &webhook.Endpoint{}
	}
	policy := e.Policy
	policy.Kind = before.Policy.Kind
	guarded := before.Auth != nil || before.TLS != nil || slices.ContainsFunc(before.Secrets, webhook.IsRef)
	switch {
	case slices.ContainsFunc(e.Secrets, func(s string) bool { return webhook.IsRef(s) && !slices.Contains(before.Secrets, s) }):
		return c.refuse("a reference in secrets")
	case !reflect.DeepEqual(e.Auth, before.Auth):
		return c.refuse("auth")
	case !reflect.DeepEqual(e.TLS, before.TLS):
		return c.refuse("tls")
	case guarded && e.URL != before.URL:
		return c.refuse("the url of an endpoint with auth, tls or a reference in secrets")
	case !reflect.DeepEqual(policy, before.Policy):
		return c.refuse("policy")
	case e.Concurrency != before.Concurrency:
		return c.refuse("concurrency")
	}
	return nil
}

// party is in whose name the caller changes the state of an endpoint.
func (c caller) party() webhook.Party {
	if c.Application != "" {
		return webhook.ByTenant
	}
	return webhook.ByOperator
}

// refuse says what is not for a token of one application to write.
func (c caller) refuse(what string) error {
	return fmt.Errorf("%w: the token %q cannot set %s: ask the operator", errForbidden, c.Name, what)
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
	return fmt.Errorf("%w: the token %q is only for application %q", errForbidden, c.Name, c.Application)
}
