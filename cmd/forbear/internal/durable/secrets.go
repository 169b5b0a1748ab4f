package durable

import (
	"fmt"
	"net/http"
	"time"
)

// defaultOverlap is how long the former secrets of an endpoint sign beside a new one.
const defaultOverlap = 24 * time.Hour

// rotateSecrets gives an endpoint a new secret, which is shown once.
func (s *Service) rotateSecrets(r *http.Request) (int, any, error) {
	var body struct {
		Overlap *time.Duration `json:"overlap"`
	}
	if r.ContentLength != 0 {
		if err := read(r, &body); err != nil {
			return 0, nil, err
		}
	}
	overlap := defaultOverlap
	if body.Overlap != nil {
		overlap = *body.Overlap
	}
	e, err := s.Dispatcher.RotateSecrets(r.Context(), r.PathValue("id"), overlap)
	if err != nil {
		return 0, nil, err
	}
	s.audit(r, "endpoint-rotate", e.ID, fmt.Sprintf("version %d: the former secrets end after %v", e.Version, overlap))
	return http.StatusOK, withTag(e), nil
}
