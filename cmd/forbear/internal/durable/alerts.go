package durable

import "net/http"

// listAlerts lists alerts, the newest first. next is the last one's id, to go on
// behind it.
func (s *Service) listAlerts(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	limit, err := limitOf(q)
	if err != nil {
		return 0, nil, err
	}
	after, err := cursorOf(q.Get("after"))
	if err != nil {
		return 0, nil, err
	}
	list, err := s.DB.DeadLetters().AlertPage(r.Context(), after, limit)
	var next int64
	if len(list) == limit {
		next = list[limit-1].ID
	}
	return http.StatusOK, map[string]any{"alerts": nonNil(list), "next": cursor(next)}, err
}

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
