package durable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// newMessage is the body of POST /v1/messages. Either payload, any JSON, or
// payload_base64 is set.
type newMessage struct {
	ID             string           `json:"id"`
	Endpoint       string           `json:"endpoint"`
	Endpoints      []string         `json:"endpoints"`
	Type           string           `json:"type"`
	Source         string           `json:"source"`
	Subject        string           `json:"subject"`
	Key            string           `json:"key"`
	IdempotencyKey string           `json:"idempotency_key"`
	CorrelationID  string           `json:"correlation_id"`
	ContentType    string           `json:"content_type"`
	Headers        []webhook.Header `json:"headers"`
	NotBefore      time.Time        `json:"not_before"`
	Payload        json.RawMessage  `json:"payload"`
	Base64         []byte           `json:"payload_base64"`
}

func (s *Service) postMessage(r *http.Request) (int, any, error) {
	var n newMessage
	if err := read(r, &n); err != nil {
		return 0, nil, err
	}
	if (n.Payload == nil) == (n.Base64 == nil) {
		return 0, nil, fmt.Errorf("%w: want either payload or payload_base64", errBadRequest)
	}
	endpoints := n.Endpoints
	if n.Endpoint != "" {
		endpoints = append(endpoints, n.Endpoint)
	}
	m := webhook.Message{
		// The caller's Idempotency-Key makes a repeated POST harmless.
		ID: cmp.Or(n.ID, r.Header.Get("Idempotency-Key")), Endpoints: endpoints, Type: n.Type, Source: n.Source, Subject: n.Subject, Key: n.Key,
		IdempotencyKey: n.IdempotencyKey, CorrelationID: cmp.Or(n.CorrelationID, r.Header.Get("X-Correlation-ID")), ContentType: n.ContentType,
		Headers: n.Headers, NotBefore: n.NotBefore, Body: n.Payload,
	}
	if n.Base64 != nil {
		m.Body = n.Base64
		m.ContentType = cmp.Or(m.ContentType, "application/octet-stream")
	}
	a, err := s.Dispatcher.Accept(r.Context(), m)
	if err != nil {
		return 0, nil, err
	}
	if a[0].Duplicate {
		return http.StatusOK, a[0], nil
	}
	return http.StatusAccepted, a[0], nil
}

func (s *Service) getMessage(r *http.Request) (int, any, error) {
	list, err := s.Dispatcher.Deliveries(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	shown, err := s.reveal(r, "message "+r.PathValue("id"))
	for _, i := range list {
		for k := range i.History {
			if !shown {
				i.History[k].Response = "" // it may hold anything
			}
		}
	}
	return http.StatusOK, map[string]any{"id": r.PathValue("id"), "deliveries": list}, err
}

// audit notes who did what. Where nothing may happen unnoted, the store does
// it in the same transaction instead.
func (s *Service) audit(r *http.Request, action, target, detail string) {
	if err := s.DB.DeadLetters().Audit(r.Context(), deadletter.Entry{Who: actor(r), Action: action, Target: target, Detail: detail}); err != nil {
		s.log.Error("audit not written", "action", action, "target", target, "error", err.Error())
	}
}

// filterOf reads a filter from a query.
func filterOf(r *http.Request) (deadletter.Filter, error) {
	q := r.URL.Query()
	f := deadletter.Filter{
		Queue: q.Get("queue"), Destination: q.Get("destination"), Reason: q.Get("reason"), ErrorType: q.Get("error_type"),
		EventID: q.Get("event_id"), State: deadletter.State(q.Get("state")), After: q.Get("after"),
	}
	var err error
	if v := q.Get("limit"); v != "" {
		if f.Limit, err = strconv.Atoi(v); err != nil || f.Limit < 1 || f.Limit > deadletter.MaxList {
			return f, fmt.Errorf("%w: limit %.20q is not 1 to %d", errBadRequest, v, deadletter.MaxList)
		}
	}
	for name, t := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if v := q.Get(name); v != "" {
			if *t, err = time.Parse(time.RFC3339, v); err != nil {
				return f, fmt.Errorf("%w: %s is not an RFC 3339 time", errBadRequest, name)
			}
		}
	}
	return f, nil
}

// reveal reports whether payloads and credentials may be shown. That is noted
// before anything is shown; when it cannot be, nothing is.
func (s *Service) reveal(r *http.Request, target string) (bool, error) {
	switch v := r.URL.Query().Get("reveal"); v {
	case "", "false":
		return false, nil
	case "true":
		return true, s.DB.DeadLetters().Audit(r.Context(), deadletter.Entry{Who: actor(r), Action: "reveal", Target: target})
	default:
		return false, fmt.Errorf("%w: reveal %.20q is not true or false", errBadRequest, v)
	}
}

func (s *Service) listLetters(r *http.Request) (int, any, error) {
	f, err := filterOf(r)
	if err != nil {
		return 0, nil, err
	}
	list, err := s.DB.DeadLetters().List(r.Context(), f)
	if err != nil {
		return 0, nil, err
	}
	next := ""
	for i := range list {
		next = list[i].ID
		list[i] = list[i].Mask()
	}
	return http.StatusOK, map[string]any{"dead_letters": nonNil(list), "next": next}, nil
}

func (s *Service) getLetter(r *http.Request) (int, any, error) {
	l, err := s.DB.DeadLetters().Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	shown, err := s.reveal(r, l.ID)
	if !shown {
		l = l.Mask()
	}
	return http.StatusOK, l, err
}

func (s *Service) exportLetters(r *http.Request) (int, any, error) {
	f, err := filterOf(r)
	if err != nil {
		return 0, nil, err
	}
	shown, err := s.reveal(r, "export "+r.URL.Query().Encode())
	if err != nil {
		return 0, nil, err
	}
	f.Limit = deadletter.MaxList
	return http.StatusOK, stream{"application/jsonl", func(w io.Writer) error {
		for {
			list, err := s.DB.DeadLetters().List(r.Context(), f)
			if err != nil || len(list) == 0 {
				return err
			}
			for _, l := range list {
				f.After = l.ID
				if !shown {
					l = l.Mask()
				}
				if err := deadletter.Export(w, l); err != nil {
					return err
				}
			}
		}
	}}, nil
}

func (s *Service) letterStats(r *http.Request) (int, any, error) {
	list, err := s.DB.DeadLetters().Stats(r.Context())
	return http.StatusOK, map[string]any{"stats": nonNil(list)}, err
}

func (s *Service) discardLetter(r *http.Request) (int, any, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := read(r, &body); err != nil {
		return 0, nil, err
	}
	if strings.TrimSpace(body.Reason) == "" {
		return 0, nil, fmt.Errorf("%w: a letter is discarded for a reason", errBadRequest)
	}
	if err := s.DB.DeadLetters().Discard(r.Context(), r.PathValue("id"), actor(r), body.Reason); err != nil {
		return 0, nil, err
	}
	l, err := s.DB.DeadLetters().Get(r.Context(), r.PathValue("id"))
	return http.StatusOK, l.Mask(), err
}

// newRedrive is the body of POST /v1/redrives.
type newRedrive struct {
	Filter      deadletter.Filter `json:"filter"`
	DryRun      bool              `json:"dry_run"`
	Rate        float64           `json:"rate"`
	Canary      bool              `json:"canary"`
	StopRatio   float64           `json:"stop_ratio"`
	MaxRedrives int               `json:"max_redrives"`
}

func (s *Service) postRedrive(r *http.Request) (int, any, error) {
	var n newRedrive
	if err := read(r, &n); err != nil {
		return 0, nil, err
	}
	n.Filter.Queue = cmp.Or(n.Filter.Queue, webhook.Queue)
	j := deadletter.Job{Filter: n.Filter, By: actor(r), Rate: n.Rate, Canary: n.Canary, StopRatio: n.StopRatio, MaxRedrives: n.MaxRedrives}
	plan, err := s.Redriver.Plan(r.Context(), j)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	if n.DryRun {
		return http.StatusOK, map[string]any{"dry_run": true, "count": plan.Total}, nil
	}
	j, err = s.Redriver.Start(r.Context(), j, webhook.NewID("rdr"))
	return http.StatusAccepted, j, err
}

func (s *Service) listRedrives(r *http.Request) (int, any, error) {
	list, err := s.DB.DeadLetters().Jobs(r.Context())
	return http.StatusOK, map[string]any{"redrives": nonNil(list)}, err
}

func (s *Service) getRedrive(r *http.Request) (int, any, error) {
	j, err := s.DB.DeadLetters().Job(r.Context(), r.PathValue("id"))
	return http.StatusOK, j, err
}

func (s *Service) setRedrive(state deadletter.JobState) func(*http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) {
		if _, err := s.DB.DeadLetters().Job(r.Context(), r.PathValue("id")); err != nil {
			return 0, nil, err
		}
		if err := s.DB.DeadLetters().SetJobState(r.Context(), r.PathValue("id"), state, actor(r)); err != nil {
			return 0, nil, err
		}
		return s.getRedrive(r)
	}
}

func (s *Service) listAlerts(r *http.Request) (int, any, error) {
	list, err := s.DB.DeadLetters().Alerts(r.Context(), 100)
	return http.StatusOK, map[string]any{"alerts": nonNil(list)}, err
}

func (s *Service) alertHealth(*http.Request) (int, any, error) {
	return http.StatusOK, map[string]any{"notifiers": s.Alerter.Health()}, nil
}

func (s *Service) testAlerts(r *http.Request) (int, any, error) {
	s.audit(r, "alert-test", "", "")
	return http.StatusOK, map[string]any{"notifiers": s.Alerter.Test(r.Context(), actor(r))}, nil
}

func (s *Service) listAudit(r *http.Request) (int, any, error) {
	list, err := s.DB.DeadLetters().Audits(r.Context(), 200)
	return http.StatusOK, map[string]any{"audit": nonNil(list)}, err
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
