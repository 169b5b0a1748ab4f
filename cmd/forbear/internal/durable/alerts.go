package durable

import (
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// listAlerts lists alerts, the newest first.
func (s *Service) listAlerts(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	after, limit, err := pageOf(q)
	if err != nil {
		return 0, nil, err
	}
	list, err := s.DB.DeadLetters().AlertPage(r.Context(), after, limit)
	return http.StatusOK, page("alerts", list, limit, func(a queue.Alert) string { return cursor(a.ID) }), err
}

// alertHealth shows which notifiers took their latest alert, and which parts of what
// runs by itself get their work done. What does not would otherwise be noticed by its
// absence alone.
func (s *Service) alertHealth(*http.Request) (int, any, error) {
	return http.StatusOK, map[string]any{"notifiers": shown(s.Alerter.Health()), "parts": shown(s.parts())}, nil
}

// parts returns how what runs by itself fares with the store.
func (s *Service) parts() []queue.Health {
	return append(s.Dispatcher.Health(), s.Redriver.Health(), s.retention.Health())
}

// shown are they with the causes in words of ours: an error of the database may name its
// address, and what a row has.
func shown(list []queue.Health) []queue.Health {
	for i := range list {
		if h := &list[i]; h.Cause != nil {
			h.Error = strings.TrimSuffix(h.Error, h.Cause.Error()) + database.Cause(h.Cause)
		}
	}
	return list
}

// testAlerts sends a test alert to every notifier and waits for the results. It is
// audited first, because a test pages people, who will ask who it was.
func (s *Service) testAlerts(r *http.Request) (int, any, error) {
	s.audit(r, "alert-test", "", "")
	return http.StatusOK, map[string]any{"notifiers": shown(s.Alerter.Test(r.Context(), actor(r)))}, nil
}
