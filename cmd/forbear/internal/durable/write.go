package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/webhook"
)

// resource is what PUT, PATCH and DELETE need of a kind of resource, so that they are
// written once for endpoints and applications.
type resource[T webhook.Endpoint | webhook.Application] struct {
	what    string // as errors and the audit call it
	version func(*T) int64
	read    func(ctx context.Context, id string) (T, error)
	update  func(ctx context.Context, id string, change func(*T) error) (T, error)
	remove  func(ctx context.Context, id string, version int64) error
}

func (s *Service) endpointResource() resource[webhook.Endpoint] {
	return resource[webhook.Endpoint]{
		"endpoint", func(e *webhook.Endpoint) int64 { return e.Version },
		s.endpoint, s.Dispatcher.UpdateEndpoint, s.Dispatcher.DeleteEndpoint,
	}
}

func (s *Service) applicationResource() resource[webhook.Application] {
	return resource[webhook.Application]{
		"application", func(a *webhook.Application) int64 { return a.Version },
		s.application, s.Dispatcher.UpdateApplication, s.DB.Webhooks().DeleteApplication,
	}
}

// replacements bounds how often a PUT starts over, because others add and delete the same
// resource meanwhile.
const replacements = 8

// put replaces a resource by change, or adds it where there is none. With If-Match it only
// replaces, with If-None-Match it only adds. change gets the very version that is replaced:
// another write that comes in between is seen and not undone.
func (res resource[T]) put(s *Service, r *http.Request, change func(stored *T) error, add func() (T, error)) (t T, err error) {
	c, err := conditionOf(r)
	if err != nil {
		return t, err
	}
	id := r.PathValue("id")
	if c.create && c.given {
		return t, c.failed(res.what, id, "it cannot both be there and be new")
	}
	defer func() {
		if err == nil {
			s.audit(r, res.what+"-put", id, "version "+strconv.FormatInt(res.version(&t), 10))
		}
	}()
	for range replacements {
		if !c.create {
			t, err = res.update(r.Context(), id, func(stored *T) error {
				return cmp.Or(c.check(res.what, id, res.version(stored)), change(stored))
			})
			if c.given || !errors.Is(err, webhook.ErrNotFound) {
				return t, c.missing(res.what, id, err)
			}
		}
		t, err = add()
		switch {
		case !errors.Is(err, webhook.ErrVersion):
			return t, err
		case c.create:
			return t, c.failed(res.what, id, "it is there already")
		}
	}
	return t, err
}

// patch changes the fields that a merge patch names (RFC 7396). It merges within the write,
// so that of two operators who change different fields at once neither undoes the other. The
// audit names the fields, and not their values.
func (res resource[T]) patch(s *Service, r *http.Request, patch map[string]any, mayWrite func(before, after *T) error) (t T, err error) {
	c, err := conditionOf(r)
	if err != nil {
		return t, err
	}
	if c.create {
		return t, fmt.Errorf("%w: If-None-Match is for PUT: a PATCH adds no %s", errBadRequest, res.what)
	}
	id := r.PathValue("id")
	var changed []string
	t, err = res.update(r.Context(), id, func(t *T) (err error) {
		if err := c.check(res.what, id, res.version(t)); err != nil {
			return err
		}
		before := *t
		if changed, err = applyPatch(t, patch); err != nil {
			return err
		}
		return mayWrite(&before, t)
	})
	if err != nil {
		return t, c.missing(res.what, id, err)
	}
	s.audit(r, res.what+"-patch", id, fmt.Sprintf("version %d: %s", res.version(&t), strings.Join(changed, ", ")))
	return t, nil
}

// delete removes a resource, if the request's condition holds for the stored version. The
// store refuses when another version comes in between; version 0 is any.
func (res resource[T]) delete(s *Service, r *http.Request) (int, any, error) {
	c, err := conditionOf(r)
	if err != nil {
		return 0, nil, err
	}
	if c.create {
		return 0, nil, fmt.Errorf("%w: If-None-Match is for PUT", errBadRequest)
	}
	id, version := r.PathValue("id"), int64(0)
	if c.given {
		stored, err := res.read(r.Context(), id)
		if err != nil {
			return 0, nil, c.missing(res.what, id, err)
		}
		version = res.version(&stored)
		if err := c.check(res.what, id, version); err != nil {
			return 0, nil, err
		}
	}
	if err := res.remove(r.Context(), id, version); err != nil {
		return 0, nil, err
	}
	s.audit(r, res.what+"-delete", id, "")
	return http.StatusNoContent, nil, nil
}
