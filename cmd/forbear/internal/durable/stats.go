package durable

import (
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// How far backlogs are counted: for one endpoint, and for each of a page. A count
// costs what it counts.
const (
	countOne  = 10_000
	countEach = 1_000
)

// endpointStats is how an endpoint fares: the store's part, which is the same in all
// processes, and this process's own.
type endpointStats struct {
	store.EndpointStats

	URL          string                `json:"url,omitempty"`
	State        webhook.EndpointState `json:"state"`
	DisabledBy   webhook.Party         `json:"disabled_by,omitempty"`
	Reason       string                `json:"reason,omitempty"`
	Since        time.Time             `json:"since,omitzero"`
	FailingSince time.Time             `json:"failing_since,omitzero"`
	Error        string                `json:"error,omitempty"` // why its configuration cannot be read
	Process      dispatch.LaneStats    `json:"process"`
}

// statsList is a page of the endpoints, with the outbox for those who may see it.
type statsList struct {
	Outbox    *store.OutboxStats `json:"outbox,omitempty"`
	Endpoints []endpointStats    `json:"endpoints"`
	Next      string             `json:"next"`
}

// Status says what holds up the deliveries to an endpoint in this process, by the name
// of its dependency; nil for any other.
func (s *Service) Status(dependency string) *gateway.DeliveryStatus {
	id, ok := strings.CutPrefix(dependency, "webhook:")
	if !ok {
		return nil
	}
	l := s.Dispatcher.LaneStats(id)
	return &gateway.DeliveryStatus{Hold: l.Hold, Held: l.Held, NextProbe: l.NextProbe}
}

// Held returns the dependencies of the endpoints whose deliveries are held up, but for
// their breakers.
func (s *Service) Held() (dependencies []string) {
	for _, id := range s.Dispatcher.Holding() {
		dependencies = append(dependencies, "webhook:"+id)
	}
	return dependencies
}

// getStats shows how an endpoint fares.
func (s *Service) getStats(r *http.Request) (int, any, error) {
	e, err := s.endpoint(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	list, err := s.stats(r, []webhook.Endpoint{e}, countOne)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, list[0], nil
}

// listStats shows how the endpoints fare, in the order of their ids, and what waits
// in the outbox.
func (s *Service) listStats(r *http.Request) (int, any, error) {
	page, next, err := s.endpoints(r)
	if err != nil {
		return 0, nil, err
	}
	list := statsList{Next: next}
	if list.Endpoints, err = s.stats(r, page, countEach); err != nil {
		return 0, nil, err
	}
	if callerOf(r).Application == "" {
		outbox, err := s.DB.Webhooks().OutboxStats(r.Context(), countOne)
		if err != nil {
			return 0, nil, err
		}
		list.Outbox = &outbox
	}
	return http.StatusOK, list, nil
}

// stats puts both parts together.
func (s *Service) stats(r *http.Request, of []webhook.Endpoint, most int) ([]endpointStats, error) {
	ids := make([]string, len(of))
	for i := range of {
		ids[i] = of[i].ID
	}
	stored, err := s.DB.Webhooks().EndpointStats(r.Context(), ids, most)
	if err != nil {
		return nil, err
	}
	list := make([]endpointStats, len(of))
	for i := range of {
		e := &of[i]
		list[i] = endpointStats{stored[i], e.Mask().URL, e.State, e.DisabledBy, e.Reason, e.Since, e.FailingSince, e.Error, s.Dispatcher.LaneStats(e.ID)}
	}
	return list, nil
}
