package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// listEndpoints lists endpoints in the order of their ids; their secrets are
// references, or masked. They are read from the store, so an endpoint that
// another process put is among them. next is the last one's id, to go on behind it.
func (s *Service) listEndpoints(r *http.Request) (int, any, error) {
	list, next, err := s.endpoints(r)
	for i := range list {
		list[i] = s.Dispatcher.Show(list[i])
	}
	return http.StatusOK, map[string]any{"endpoints": nonNil(list), "next": next}, err
}

// maxText bounds a part of an id or a URL that is looked for, in bytes.
const maxText = 200

// endpointStates are those of endpoints.
var endpointStates = []string{string(webhook.Enabled), string(webhook.Disabled)}

// endpoints reads the page that a query asks for of the endpoints that its caller may
// see.
func (s *Service) endpoints(r *http.Request) (list []webhook.Endpoint, next string, err error) {
	q := r.URL.Query()
	limit, err := limitOf(q)
	if err != nil {
		return nil, "", err
	}
	f := store.EndpointFilter{Application: q.Get("application"), State: webhook.EndpointState(q.Get("state")), Text: q.Get("q")}
	if err := callerOf(r).confine(&f.Application); err != nil {
		return nil, "", err
	}
	if f.State != "" {
		if err := checkStates([]string{q.Get("state")}, endpointStates); err != nil {
			return nil, "", err
		}
	}
	if len(f.Text) > maxText {
		return nil, "", fmt.Errorf("%w: q: want at most %d bytes", errBadRequest, maxText)
	}
	return s.DB.Webhooks().EndpointPage(r.Context(), f, q.Get("after"), limit)
}

// endpoint reads one endpoint. An unreadable configuration is not an error here: the state,
// the version and the application are still known.
func (s *Service) endpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	e, err := s.DB.Webhooks().Endpoint(ctx, id)
	if errors.Is(err, webhook.ErrUnreadable) {
		err = nil
	}
	return e, err
}

// tagged is a response with an ETag, and the address of what is new, which adapt
// sends. Handlers return it in place of the body and never see the ResponseWriter.
type tagged struct {
	tag      string
	body     any
	location string
}

// shownEndpoint is an endpoint with the secret that was made for it.
type shownEndpoint struct {
	webhook.Endpoint
	madeSecret
}

// putEndpoint adds an endpoint or replaces its configuration. The state is not
// among what it replaces: a client that puts its own copy every hour would
// otherwise enable what the dispatcher has disabled.
func (s *Service) putEndpoint(r *http.Request, e webhook.Endpoint) (int, any, error) {
	if e.ID != "" && e.ID != r.PathValue("id") {
		return 0, nil, fmt.Errorf("%w: the id in the body is not that in the path", errBadRequest)
	}
	e.ID = r.PathValue("id")
	e.Policy.Kind = forbear.Webhook
	if err := callerOf(r).confine(&e.Application); err != nil {
		return 0, nil, err
	}
	res := s.endpointResource()
	put, err := res.put(r, func(stored *webhook.Endpoint) error {
		if err := checkPut(r, stored, &e); err != nil {
			return err
		}
		next := e
		if len(next.Secrets) == 0 && !next.Unsigned { // it keeps them
			next.Secrets = stored.Secrets
		}
		next.OldSecrets = stored.OldSecrets
		*stored = next
		return nil
	}, func() (webhook.Endpoint, error) { return s.add(r, e) })
	return http.StatusOK, res.tagged(put), err
}

// add adds an endpoint that is not there.
func (s *Service) add(r *http.Request, e webhook.Endpoint) (webhook.Endpoint, error) {
	if err := checkPut(r, nil, &e); err != nil {
		return e, err
	}
	e.Version = webhook.VersionNone
	return s.Dispatcher.PutEndpoint(r.Context(), e)
}

// postEndpoint adds an endpoint under an id that is made for it.
func (s *Service) postEndpoint(r *http.Request, e webhook.Endpoint) (int, any, error) {
	if e.ID != "" {
		return 0, nil, fmt.Errorf("%w: POST generates the id: use PUT /v1/endpoints/{id} to choose it", errBadRequest)
	}
	if err := callerOf(r).confine(&e.Application); err != nil {
		return 0, nil, err
	}
	e.ID, e.Policy.Kind = webhook.NewID("ep"), forbear.Webhook
	e, err := s.add(r, e)
	if err != nil {
		return 0, nil, err
	}
	s.audit(r, "endpoint-put", e.ID, "version "+strconv.FormatInt(e.Version, 10))
	added := s.endpointResource().tagged(e)
	added.location = "/v1/endpoints/" + e.ID
	return http.StatusCreated, added, nil
}

// checkPut refuses what the caller may not put in the place of what is stored, or of
// nothing: what is another application's, what is for the operator to write, and a state
// that the endpoint is not in. A body that says "disabled" would otherwise be taken, and
// the endpoint served on.
func checkPut(r *http.Request, stored, next *webhook.Endpoint) error {
	is := webhook.Enabled
	if stored != nil {
		is = cmp.Or(stored.State, is)
		if stored.Application != next.Application {
			return fmt.Errorf("endpoint %q: %w", stored.ID, webhook.ErrTaken)
		}
	}
	if next.State != "" && next.State != is {
		return fmt.Errorf("%w endpoint: state is %q and cannot be put as %.20q: %s", webhook.ErrInvalid, is, next.State, theWay)
	}
	return callerOf(r).mayWrite(stored, next)
}

// theWay says how the state of an endpoint is changed, for the errors of those who
// tried to write it. Its text is part of error messages that clients show to
// operators.
const theWay = "use POST /v1/endpoints/{id}/disable, /enable or /test-and-enable"

// readOnly are the fields of an endpoint that no PATCH may name. The dispatcher owns
// them, and some are in responses alone.
var readOnly = []string{"id", "application", "state", "reason", "since", "version", "failing_since", "held", "error", "disabled_by", "old_secrets", "secret", "public_key"}

// checkPatch refuses what is not for the caller to write, with the way to what
// may have been meant.
func checkPatch(patch map[string]any) error {
	for name := range patch {
		switch {
		case !slices.Contains(readOnly, name):
			continue
		case name == "id":
			return fmt.Errorf("%w endpoint: id cannot be changed: PUT a new endpoint", webhook.ErrInvalid)
		case name == "application":
			return fmt.Errorf("%w endpoint: application cannot be changed: PUT a new endpoint", webhook.ErrInvalid)
		case name == "old_secrets" || name == "secret" || name == "public_key":
			return fmt.Errorf("%w endpoint: %s cannot be patched: use POST /v1/endpoints/{id}/secrets/rotate, or patch secrets to replace all of them", webhook.ErrInvalid, name)
		case name == "version":
			return fmt.Errorf("%w endpoint: version cannot be patched: name the expected version in If-Match", webhook.ErrInvalid)
		}
		return fmt.Errorf("%w endpoint: %s cannot be patched: %s", webhook.ErrInvalid, name, theWay)
	}
	return nil
}

// disableEndpoint stops an endpoint. Its messages wait, and nothing is lost. The
// attempt under way may still finish.
func (s *Service) disableEndpoint(r *http.Request, body because) (int, any, error) {
	return s.setState(r, webhook.Disabled, cmp.Or(body.Reason, "disabled by "+actor(r)), "endpoint-disable", body.Reason)
}

// enableEndpoint serves an endpoint again without a test: an operator may know what a test
// message would show.
func (s *Service) enableEndpoint(r *http.Request) (int, any, error) {
	return s.setState(r, webhook.Enabled, "", "endpoint-enable", "")
}

// setState changes the state of an endpoint in the name of the caller, and shows it.
func (s *Service) setState(r *http.Request, state webhook.EndpointState, reason, action, detail string) (int, any, error) {
	id := r.PathValue("id")
	if err := s.Dispatcher.SetState(r.Context(), id, state, callerOf(r).party(), reason); err != nil {
		return 0, nil, err
	}
	s.audit(r, action, id, detail)
	return s.endpointResource().get(r)
}

// testMessage is the body of a test. It may be left out.
type testMessage struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// testEndpoint sends one test message of a type, and changes nothing.
func (s *Service) testEndpoint(r *http.Request, m testMessage) (int, any, error) {
	res, err := s.Dispatcher.Test(r.Context(), r.PathValue("id"), m.Type, m.Payload, callerOf(r).party())
	return s.tested(r, res, err)
}

// testAndEnable sends one test message, and enables the endpoint when it accepts that: enable
// goes by the operator's word alone.
func (s *Service) testAndEnable(r *http.Request) (int, any, error) {
	res, err := s.Dispatcher.TestAndEnable(r.Context(), r.PathValue("id"), callerOf(r).party())
	return s.tested(r, res, err)
}

// tested records a test.
func (s *Service) tested(r *http.Request, res dispatch.TestResult, err error) (int, any, error) {
	if err == nil {
		s.audit(r, "endpoint-test", r.PathValue("id"), fmt.Sprintf("ok %v", res.OK))
	}
	return http.StatusOK, res, err
}
