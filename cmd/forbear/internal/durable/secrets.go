package durable

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// defaultOverlap is how long former secrets sign beside a new one.
const defaultOverlap = 24 * time.Hour

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

// rotateEndpoint gives an endpoint a new secret.
func (s *Service) rotateEndpoint(r *http.Request) (int, any, error) {
	return s.rotate(r, "endpoint-rotate", func(ctx context.Context, id string, overlap time.Duration) (int64, tagged, error) {
		e, err := s.Dispatcher.RotateSecrets(ctx, id, overlap)
		return e.Version, withTag(e), err
	})
}

// rotateApplication gives an application a new secret.
func (s *Service) rotateApplication(r *http.Request) (int, any, error) {
	return s.rotate(r, "application-rotate", func(ctx context.Context, id string, overlap time.Duration) (int64, tagged, error) {
		a, err := s.Dispatcher.RotateApplicationSecrets(ctx, id, overlap)
		return a.Version, withTagOf(a), err
	})
}

// rotate reads what a rotation is to be like, and records it.
func (s *Service) rotate(r *http.Request, action string, rotate func(ctx context.Context, id string, overlap time.Duration) (int64, tagged, error)) (int, any, error) {
	var body struct {
		Overlap *time.Duration `json:"overlap"`
	}
	if r.ContentLength != 0 {
		if err := readBody(r, &body); err != nil {
			return 0, nil, err
		}
	}
	overlap := defaultOverlap
	if body.Overlap != nil {
		overlap = *body.Overlap
	}
	version, rotated, err := rotate(r.Context(), r.PathValue("id"), overlap)
	if err != nil {
		return 0, nil, err
	}
	s.audit(r, action, r.PathValue("id"), fmt.Sprintf("version %d: the former secrets end after %v", version, overlap))
	return http.StatusOK, rotated, nil
}
