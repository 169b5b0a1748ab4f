package durable

import (
	"context"
	"fmt"
	"net/http"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// act is what can be done to messages, one or many.
type act struct {
	do func(s *Service, ctx context.Context, page store.MessagePage, by string) ([]store.MessageResult, error)
	// states are those of messages that it can be done to.
	states []string
	// batch is how many it is done to at once.
	batch int
	// sends says that messages are sent by it.
	sends bool
}

var (
	canceling = act{func(s *Service, ctx context.Context, page store.MessagePage, by string) ([]store.MessageResult, error) {
		return s.Dispatcher.Cancel(ctx, page.Numbers(), by)
	}, []string{store.StateWaiting, store.StateHeld, store.StateSending}, store.MaxAct, false}
	sendingAgain = act{func(s *Service, ctx context.Context, page store.MessagePage, by string) ([]store.MessageResult, error) {
		return s.Dispatcher.SendAgain(ctx, page.Numbers(), by)
	}, []string{store.StateDelivered, store.StateDead, store.StateCanceled}, store.MaxAct, true}
	// Each takes a transaction of its own.
	erasing = act{func(s *Service, ctx context.Context, page store.MessagePage, by string) ([]store.MessageResult, error) {
		return s.DB.Webhooks().EraseAll(ctx, page.Messages, by)
	}, messageStates, usualPage, false}
)

// oneMessage is the body of what is done to one message. It may be left out.
type oneMessage struct {
	// Endpoint is where; empty: at all of them.
	Endpoint string `json:"endpoint"`
}

// manyMessages is the body of what is done to many messages.
type manyMessages struct {
	Filter store.MessageFilter `json:"filter"`
	// DryRun only counts.
	DryRun bool `json:"dry_run"`
	// After is the Next of the batch before.
	After string `json:"after"`
}

// manyResult is what became of one batch.
type manyResult struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Done are those that were changed, or would be by their state, and Refused the
	// others by what stood against it.
	Done    int            `json:"done"`
	Refused map[string]int `json:"refused,omitempty"`
	// Unreadable are those that could not be compared with the filter, and were left.
	Unreadable int `json:"unreadable,omitempty"`
	// Next is where the next batch begins; "" when this was the last one.
	Next string `json:"next"`
}

// actOnOne does it to one message, at one endpoint or all.
func (s *Service) actOnOne(a act) operation {
	return mayTake(func(r *http.Request, body oneMessage) (int, any, error) {
		f := store.MessageFilter{ID: r.PathValue("id")}
		if body.Endpoint != "" {
			f.Endpoints = []string{body.Endpoint}
		}
		page, err := s.messages(r, f, 0, maxPage)
		if err == nil && len(page.Messages) == 0 {
			err = fmt.Errorf("message %q: %w", f.ID, webhook.ErrNotFound)
		}
		if err != nil {
			return 0, nil, err
		}
		results, err := s.act(r, a, page)
		return http.StatusOK, map[string]any{"messages": nonNil(results)}, err
	})
}

// act does it. What a tenant sends again counts against the application's rate, as new
// messages do.
func (s *Service) act(r *http.Request, a act, page store.MessagePage) ([]store.MessageResult, error) {
	if a.sends {
		if err := s.Dispatcher.Limit(callerOf(r).Application, len(page.Messages)); err != nil {
			return nil, err
		}
	}
	return a.do(s, r.Context(), page, actor(r))
}

// actOnMany does it to a batch of those that a filter chooses, from the newest
// down. A filter that chooses all is refused: it is more likely a mistake.
func (s *Service) actOnMany(a act) operation {
	return takes(func(r *http.Request, body manyMessages) (int, any, error) {
		after, err := cursorOf(body.After)
		if err != nil {
			return 0, nil, err
		}
		f := body.Filter
		if f.IsZero() {
			return 0, nil, fmt.Errorf("%w: the filter chooses all messages: name at least a state", errBadRequest)
		}
		if err := checkStates(f.States, a.states); err != nil {
			return 0, nil, err
		}
		if len(f.States) == 0 {
			f.States = a.states
		}
		f.Bare = true
		page, err := s.messages(r, f, after, a.batch)
		if err != nil {
			return 0, nil, err
		}
		result := manyResult{DryRun: body.DryRun, Done: page.Kept(), Unreadable: page.Unreadable, Next: cursor(page.Next)}
		if body.DryRun || len(page.Messages) == 0 {
			return http.StatusOK, result, nil
		}
		results, err := s.act(r, a, page)
		result.Done = 0
		for _, m := range results {
			if m.Done {
				result.Done++
				continue
			}
			if result.Refused == nil {
				result.Refused = map[string]int{}
			}
			result.Refused[m.Why]++
		}
		return http.StatusOK, result, err
	})
}
