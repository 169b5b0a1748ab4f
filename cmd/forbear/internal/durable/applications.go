package durable

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/forbear-go/forbear/webhook"
)

// listApplications lists applications in the order of their ids.
func (s *Service) listApplications(r *http.Request) (int, any, error) {
	limit, err := limitOf(r.URL.Query())
	if err != nil {
		return 0, nil, err
	}
	list, err := s.DB.Webhooks().Applications(r.Context(), r.URL.Query().Get("after"), limit)
	for i := range list {
		list[i] = list[i].Mask()
	}
	return http.StatusOK, page("applications", list, limit, func(a webhook.Application) string { return a.ID }), err
}

// application reads one application, as [Service.endpoint] does an endpoint.
func (s *Service) application(ctx context.Context, id string) (webhook.Application, error) {
	a, err := s.DB.Webhooks().Application(ctx, id)
	if errors.Is(err, webhook.ErrUnreadable) {
		err = nil
	}
	return a, err
}

// shownApplication is an application with the secret that was made for it.
type shownApplication struct {
	webhook.Application
	madeSecret
}

// putApplication adds an application or replaces its configuration.
func (s *Service) putApplication(r *http.Request, a webhook.Application) (int, any, error) {
	if a.ID != "" && a.ID != r.PathValue("id") {
		return 0, nil, fmt.Errorf("%w: the id in the body is not that in the path", errBadRequest)
	}
	a.ID, a.Version = r.PathValue("id"), webhook.VersionNone // the body's version says nothing: If-Match does
	res := s.applicationResource()
	put, err := res.put(r, func(stored *webhook.Application) error {
		err := checkSuspended(stored, a)
		next := a
		if len(a.Secrets) == 0 { // it keeps them
			next.Secrets = stored.Secrets
		}
		next.OldSecrets, next.Suspended, next.Reason = stored.OldSecrets, stored.Suspended, stored.Reason
		*stored = next
		return err
	}, func() (webhook.Application, error) {
		if err := checkSuspended(&webhook.Application{}, a); err != nil {
			return a, err
		}
		return s.Dispatcher.PutApplication(r.Context(), a)
	})
	return http.StatusOK, res.tagged(put), err
}

// checkSuspended refuses a suspension that the stored application is not in: a client that
// puts its own copy every hour must not lift one, nor believe that it did.
func checkSuspended(stored *webhook.Application, a webhook.Application) error {
	if a.Suspended && (!stored.Suspended || a.Reason != stored.Reason) || a.Reason != "" && !a.Suspended {
		return fmt.Errorf("%w application: suspended and reason cannot be put: use PATCH /v1/applications/{id}", webhook.ErrInvalid)
	}
	return nil
}

// checkApplicationPatch refuses what is not to be patched. A suspension that is lifted takes
// its reason along.
func checkApplicationPatch(patch map[string]any) error {
	for _, name := range []string{"id", "version", "created_at", "old_secrets", "error"} {
		if _, ok := patch[name]; ok {
			return fmt.Errorf("%w application: %s cannot be changed", webhook.ErrInvalid, name)
		}
	}
	if suspended, ok := patch["suspended"]; ok && suspended != true && patch["reason"] == nil {
		patch["reason"] = nil
	}
	return nil
}
