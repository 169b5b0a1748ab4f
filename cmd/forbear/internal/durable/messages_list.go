package durable

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/forbear-go/forbear/webhook/store"
)

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
			return fmt.Errorf("%w: state: want %s, got %.20q", errBadRequest, either(allowed), state)
		}
	}
	return nil
}
