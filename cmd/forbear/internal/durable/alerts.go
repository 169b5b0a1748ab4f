package durable

import "net/http"

// alertHealth shows which notifiers took their latest alert. An alert that cannot
// be sent would otherwise be noticed by its absence alone.
func (s *Service) alertHealth(*http.Request) (int, any, error) {
	return http.StatusOK, map[string]any{"notifiers": s.Alerter.Health()}, nil
}

// testAlerts sends a test alert to every notifier and waits for the results. It is
// audited first, because a test pages people, who will ask who it was.
func (s *Service) testAlerts(r *http.Request) (int, any, error) {
	s.audit(r, "alert-test", "", "")
	return http.StatusOK, map[string]any{"notifiers": s.Alerter.Test(r.Context(), actor(r))}, nil
}
