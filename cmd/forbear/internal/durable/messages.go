package durable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// newMessage is the body of POST /v1/messages. Either payload, any JSON, or
// payload_base64 is set. Endpoint and endpoints add up: with several, the message
// is accepted at all of them or at none. It is apart from webhook.Message, so that a
// field added there does not become part of the API by accident.
type newMessage struct {
	ID             string           `json:"id"`
	Endpoint       string           `json:"endpoint"`
	Endpoints      []string         `json:"endpoints"`
	Application    string           `json:"application"`
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

// postMessage accepts a message: once it is acknowledged, it is delivered or
// becomes a dead letter. 202 is a new one, 200 one that was accepted before. A
// repeated POST with other content is 409, since one of the two callers would
// otherwise lose its message.
//
// The store has committed before the response is sent, so an acknowledgement survives a crash.
func (s *Service) postMessage(r *http.Request, n newMessage) (int, any, error) {
	if (n.Payload == nil) == (n.Base64 == nil) {
		return 0, nil, fmt.Errorf("%w: want payload or payload_base64, not both", errBadRequest)
	}
	endpoints := n.Endpoints
	if n.Endpoint != "" {
		endpoints = append(endpoints, n.Endpoint)
	}
	if err := s.confineMessage(r, endpoints, &n.Application); err != nil {
		return 0, nil, err
	}
	if n.ID == "" {
		var err error
		if n.ID, err = keyOf(r); err != nil {
			return 0, nil, err
		}
	}
	m := webhook.Message{
		Application: n.Application,
		ID:          n.ID, Endpoints: endpoints, Type: n.Type, Source: n.Source, Subject: n.Subject, Key: n.Key,
		IdempotencyKey: n.IdempotencyKey, CorrelationID: cmp.Or(n.CorrelationID, r.Header.Get("X-Correlation-ID")), ContentType: n.ContentType,
		Headers: n.Headers, NotBefore: n.NotBefore, Body: n.Payload,
	}
	// What came in base64 is of a type that only the caller knows.
	if n.Base64 != nil {
		m.Body = n.Base64
		m.ContentType = cmp.Or(m.ContentType, "application/octet-stream")
	}
	ctx := edge.WithTraceContext(r.Context(), edge.ParseTraceContext(r.Header.Get("Traceparent"), r.Header.Get("Tracestate")))
	a, err := s.Dispatcher.Accept(ctx, m)
	if err != nil {
		return 0, nil, err
	}
	if a[0].Duplicate {
		return http.StatusOK, a[0], nil
	}
	return http.StatusAccepted, a[0], nil
}

// keyOf returns the caller's Idempotency-Key, in either of its spellings: as the id of
// a message it makes a repeated POST harmless. "" is none.
func keyOf(r *http.Request) (string, error) {
	lines := idemkey.Lines(r.Header)
	if len(lines) == 0 {
		return "", nil
	}
	key, err := idempotency.ParseKey(lines[0])
	if err == nil && len(lines) > 1 {
		err = fmt.Errorf("%w: %d header lines", idempotency.ErrKey, len(lines))
	}
	if err != nil {
		return "", fmt.Errorf("%w message: %s: %w", webhook.ErrInvalid, idempotency.Header, err)
	}
	return key, nil
}

// confineMessage keeps a message to the caller's application, or to endpoints of it.
func (s *Service) confineMessage(r *http.Request, endpoints []string, application *string) error {
	c := callerOf(r)
	switch {
	case len(endpoints) == 0:
		return c.confine(application)
	case c.Application == "":
		return nil
	case len(endpoints) > maxPage:
		return fmt.Errorf("%w message: %d endpoints, want at most %d", webhook.ErrInvalid, len(endpoints), maxPage)
	}
	own, err := s.ownEndpoints(r.Context(), c, endpoints)
	if err != nil {
		return err
	}
	for _, id := range endpoints {
		if !slices.Contains(own, id) {
			return fmt.Errorf("%w %.64q: add it with PUT /v1/endpoints/{id} or forbear endpoints add", webhook.ErrUnknownEndpoint, id)
		}
	}
	return nil
}

// messageShown is what has become of a message at each of its endpoints, and what it
// is.
type messageShown struct {
	ID         string                 `json:"id"`
	Contents   []store.MessageContent `json:"contents"`
	Deliveries []store.DeliveryInfo   `json:"deliveries"`
}

// maxContents bounds how many contents are shown of an id that stands for several.
const maxContents = 16

// getMessage shows what a message is, and what has become of it at each of its
// endpoints. Payload, values of headers, and what the endpoints responded, which may
// repeat the payload, are shown on reveal alone.
func (s *Service) getMessage(r *http.Request) (int, any, error) {
	m := messageShown{ID: r.PathValue("id"), Contents: []store.MessageContent{}}
	list, err := s.Dispatcher.Deliveries(r.Context(), m.ID)
	if err == nil {
		m.Deliveries, err = s.own(r, list)
	}
	if err != nil {
		return 0, nil, err
	}
	var own []string // others may have the id for other messages
	if callerOf(r).Application != "" {
		for _, d := range m.Deliveries {
			own = append(own, d.Endpoint)
		}
	}
	contents, err := s.DB.Webhooks().Contents(r.Context(), m.ID, own, maxContents)
	if err != nil {
		return 0, nil, err
	}
	shown, err := s.reveal(r, "message "+m.ID)
	for _, c := range contents {
		if !shown {
			c = c.Mask()
		}
		m.Contents = append(m.Contents, c)
	}
	for _, i := range m.Deliveries {
		for k := range i.History {
			if !shown {
				i.History[k].Response = ""
			}
		}
	}
	return http.StatusOK, m, err
}

// eraseMessage removes what is kept of a message, of the caller's application or at all.
func (s *Service) eraseMessage(r *http.Request) (int, any, error) {
	id, c := r.PathValue("id"), callerOf(r)
	var endpoints []string
	if c.Application != "" {
		own, err := s.ownEndpoints(r.Context(), c, nil)
		if err != nil {
			return 0, nil, err
		}
		// A row of the outbox that was refused may have named the application alone.
		endpoints = append(own, store.DestinationOf(&webhook.Message{Application: c.Application}))
	}
	n, err := s.DB.Webhooks().Erase(r.Context(), id, endpoints, actor(r))
	if err == nil && n == 0 {
		err = fmt.Errorf("message %q: %w", id, webhook.ErrNotFound)
	}
	return http.StatusNoContent, nil, err
}

// own takes out of a message's deliveries those to endpoints that are not of the
// caller's application. One that has no other is not found.
func (s *Service) own(r *http.Request, list []store.DeliveryInfo) ([]store.DeliveryInfo, error) {
	if c := callerOf(r); c.Application != "" {
		own, err := s.ownEndpoints(r.Context(), c, nil)
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(i store.DeliveryInfo) bool { return !slices.Contains(own, i.Endpoint) })
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("message %q: %w", r.PathValue("id"), webhook.ErrNotFound)
	}
	return list, nil
}

// messageStates are the states that a list can be asked for.
var messageStates = []string{
	store.StateWaiting, store.StateHeld, store.StateSending, store.StateCanceling, store.StateDelivered, store.StateDead, store.StateCanceled,
}

// messageList is a page of messages. Next is "" on the last one.
type messageList struct {
	Messages []store.MessageInfo `json:"messages"`
	// Unreadable counts those that could not be compared with the filter.
	Unreadable int    `json:"unreadable,omitempty"`
	Next       string `json:"next"`
}

// leastPatience is enough for a step of a search.
const leastPatience = 10 * time.Millisecond

// listMessages lists messages at their endpoints, the newest first and without their
// payloads. A page is looked for during a bounded time: it may be short, or empty, and
// have a next.
func (s *Service) listMessages(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	after, limit, err := pageOf(q)
	if err != nil {
		return 0, nil, err
	}
	f := store.MessageFilter{ID: q.Get("id"), Endpoints: q["endpoint"], Application: q.Get("application"), Type: q.Get("type"), Key: q.Get("key"), States: q["state"]}
	if f.Since, f.Until, err = timesOf(q); err != nil {
		return 0, nil, err
	}
	if err := checkStates(f.States, messageStates); err != nil {
		return 0, nil, err
	}
	if text := q.Get("patience"); text != "" {
		if f.Patience, err = policyfile.ParseDuration(text); err != nil || f.Patience < leastPatience || f.Patience > time.Second {
			return 0, nil, fmt.Errorf("%w: patience: want %v to 1s, got %.20q", errBadRequest, leastPatience, text)
		}
	}
	page, err := s.messages(r, f, after, limit)
	return http.StatusOK, messageList{nonNil(page.Messages), page.Unreadable, cursor(page.Next)}, err
}

// messages reads a page of what the caller may see.
func (s *Service) messages(r *http.Request, f store.MessageFilter, after int64, limit int) (page store.MessagePage, err error) {
	if err := callerOf(r).confine(&f.Application); err != nil {
		return page, err
	}
	return s.DB.Webhooks().Messages(r.Context(), f, after, limit)
}

// checkStates refuses states that are not among those allowed.
func checkStates(states, allowed []string) error {
	for _, state := range states {
		if !slices.Contains(allowed, state) {
			return fmt.Errorf("%w: state: want %s, got %.20q", errBadRequest, cli.OneOf(allowed), state)
		}
	}
	return nil
}
