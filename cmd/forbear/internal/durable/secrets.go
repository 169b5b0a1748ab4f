package durable

import (
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

// rotation is the body of a rotation. It may be left out.
type rotation struct {
	Overlap *time.Duration `json:"overlap"`
}

// rotateEndpoint gives an endpoint a new secret.
func (s *Service) rotateEndpoint(r *http.Request, body rotation) (int, any, error) {
	overlap := body.overlap()
	e, err := s.Dispatcher.RotateSecrets(r.Context(), r.PathValue("id"), overlap)
	return s.rotated(r, "endpoint", e.Version, overlap, withTag(e), err)
}

// rotateApplication gives an application a new secret.
func (s *Service) rotateApplication(r *http.Request, body rotation) (int, any, error) {
	overlap := body.overlap()
	a, err := s.Dispatcher.RotateApplicationSecrets(r.Context(), r.PathValue("id"), overlap)
	return s.rotated(r, "application", a.Version, overlap, withTagOf(a), err)
}

func (b rotation) overlap() time.Duration {
	if b.Overlap == nil {
		return defaultOverlap
	}
	return *b.Overlap
}

// rotated records a rotation.
func (s *Service) rotated(r *http.Request, what string, version int64, overlap time.Duration, shown tagged, err error) (int, any, error) {
	if err == nil {
		s.audit(r, what+"-rotate", r.PathValue("id"), fmt.Sprintf("version %d: the former secrets end after %v", version, overlap))
	}
	return http.StatusOK, shown, err
}
