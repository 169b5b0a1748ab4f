package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// resource is what the operations on one resource need of its kind, so that they are
// written once for endpoints and applications.
type resource[T webhook.Endpoint | webhook.Application] struct {
	*Service
	what    string // as errors and the audit call it
	version func(*T) int64
	// shown is what a caller sees of one, masked, with the secret that was made for it. What
	// it returns of a zero value has the fields that a patch may have.
	shown  func(T) any
	read   func(ctx context.Context, id string) (T, error)
	update func(ctx context.Context, id string, change func(*T) error) (T, error)
	remove func(ctx context.Context, id string, version int64) error
	rotate func(ctx context.Context, id string, overlap time.Duration) (T, error)
	// checkPatch refuses the fields that are not for a patch, and mayWrite what is not for
	// the caller to change.
	checkPatch func(patch map[string]any) error
	mayWrite   func(c caller, before, after *T) error
	changed    func() // is called when one was patched or deleted
}

// endpointResource is that of endpoints. What waits for one that is deleted becomes dead
// letters.
func (s *Service) endpointResource() resource[webhook.Endpoint] {
	return resource[webhook.Endpoint]{
		Service: s, what: "endpoint",
		version: func(e *webhook.Endpoint) int64 { return e.Version },
		shown:   func(e webhook.Endpoint) any { return &shownEndpoint{e.Mask(), showSecret(e.MadeSecret)} },
		read:    s.Dispatcher.Endpoint, update: s.Dispatcher.UpdateEndpoint,
		remove: s.Dispatcher.DeleteEndpoint, rotate: s.Dispatcher.RotateSecrets,
		checkPatch: checkPatch, mayWrite: caller.mayWrite,
		changed: func() {},
	}
}

// applicationResource is that of applications. One with endpoints is not deleted: deleting
// those would delete what waits for them, which is to be asked for.
func (s *Service) applicationResource() resource[webhook.Application] {
	return resource[webhook.Application]{
		Service: s, what: "application",
		version: func(a *webhook.Application) int64 { return a.Version },
		shown:   func(a webhook.Application) any { return &shownApplication{a.Mask(), showSecret(a.MadeSecret)} },
		read:    s.application, update: s.Dispatcher.UpdateApplication,
		remove: s.DB.Webhooks().DeleteApplication, rotate: s.Dispatcher.RotateApplicationSecrets,
		checkPatch: checkApplicationPatch, mayWrite: func(caller, *webhook.Application, *webhook.Application) error { return nil },
		changed: s.tokens.forget, // they may do less now, or more, or are gone
	}
}

// tagged makes the response that shows one, with the tag that a conditional write names. The
// tag is that of the configuration: the state changes by itself, and is not what a write
// replaces.
func (res resource[T]) tagged(t T) tagged {
	return tagged{tag: tagOf(res.version(&t)), body: res.shown(t)}
}

// get shows one.
func (res resource[T]) get(r *http.Request) (int, any, error) {
	t, err := res.read(r.Context(), r.PathValue("id"))
	return http.StatusOK, res.tagged(t), err
}

// replacements bounds how often a PUT starts over, because others add and delete the same
// resource meanwhile.
const replacements = 8

// put replaces a resource by change, or adds it where there is none. With If-Match it only
// replaces, with If-None-Match it only adds. change gets the very version that is replaced:
// another write that comes in between is seen and not undone.
func (res resource[T]) put(r *http.Request, change func(stored *T) error, add func() (T, error)) (t T, err error) {
	c, err := conditionOf(r)
	if err != nil {
		return t, err
	}
	id := r.PathValue("id")
	if c.create && c.given {
		return t, c.failed(res.what, id, "it cannot both exist and be new")
	}
	defer func() {
		if err == nil {
			res.audit(r, res.what+"-put", id, "version "+strconv.FormatInt(res.version(&t), 10))
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
			return t, c.failed(res.what, id, "it already exists")
		}
	}
	return t, err
}

// patch changes the fields that a merge patch names (RFC 7396). It merges within the write,
// so that of two operators who change different fields at once neither undoes the other. The
// audit names the fields, and not their values.
func (res resource[T]) patch(r *http.Request) (int, any, error) {
	patch, err := readPatch(r, res.shown(*new(T)))
	if err == nil {
		err = res.checkPatch(patch)
	}
	if err != nil {
		return 0, nil, err
	}
	defer res.changed()
	c, err := conditionOf(r)
	if err != nil {
		return 0, nil, err
	}
	if c.create {
		return 0, nil, fmt.Errorf("%w: If-None-Match is only for PUT: a PATCH adds no %s", errBadRequest, res.what)
	}
	id := r.PathValue("id")
	var changed []string
	t, err := res.update(r.Context(), id, func(t *T) (err error) {
		if err := c.check(res.what, id, res.version(t)); err != nil {
			return err
		}
		before := *t
		if changed, err = applyPatch(t, patch); err != nil {
			return err
		}
		return res.mayWrite(callerOf(r), &before, t)
	})
	if err != nil {
		return 0, nil, c.missing(res.what, id, err)
	}
	res.audit(r, res.what+"-patch", id, fmt.Sprintf("version %d: %s", res.version(&t), strings.Join(changed, ", ")))
	return http.StatusOK, res.tagged(t), nil
}

// delete removes a resource, if the request's condition holds for the stored version. The
// store refuses when another version comes in between; version 0 is any.
func (res resource[T]) delete(r *http.Request) (int, any, error) {
	defer res.changed()
	c, err := conditionOf(r)
	if err != nil {
		return 0, nil, err
	}
	if c.create {
		return 0, nil, fmt.Errorf("%w: If-None-Match is only for PUT", errBadRequest)
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
	res.audit(r, res.what+"-delete", id, "")
	return http.StatusNoContent, nil, nil
}

// defaultOverlap is how long former secrets sign beside a new one.
const defaultOverlap = 24 * time.Hour

// rotation is the body of a rotation. It may be left out.
type rotation struct {
	Overlap *time.Duration `json:"overlap"`
}

// rotated gives one a new secret.
func (res resource[T]) rotated(r *http.Request, body rotation) (int, any, error) {
	overlap := defaultOverlap
	if body.Overlap != nil {
		overlap = *body.Overlap
	}
	t, err := res.rotate(r.Context(), r.PathValue("id"), overlap)
	if err == nil {
		res.audit(r, res.what+"-rotate", r.PathValue("id"), fmt.Sprintf("version %d: the old secrets end after %v", res.version(&t), overlap))
	}
	return http.StatusOK, res.tagged(t), err
}

// madeSecret is the secret that was made for an endpoint or an application, which is in
// this response and no other, or the public key of that, since its receivers need no
// more.
type madeSecret struct {
	Secret    string `json:"secret,omitempty"`
	PublicKey string `json:"public_key,omitempty"`
}

// showSecret returns how a secret that was made is shown; "" is none.
func showSecret(made string) madeSecret {
	if key := webhook.PublicKey(made); key != "" {
		return madeSecret{PublicKey: key}
	}
	return madeSecret{Secret: made}
}
