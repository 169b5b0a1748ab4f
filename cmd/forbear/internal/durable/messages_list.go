package durable

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// messageStates are the states that a list can be asked for.
var messageStates = []string{
	webhook.StateWaiting, webhook.StateHeld, webhook.StateSending, webhook.StateCanceling, webhook.StateDelivered, webhook.StateDead, webhook.StateCanceled,
}

// messageList is a page of messages. Next is "" on the last one.
type messageList struct {
	Messages []webhook.MessageInfo `json:"messages"`
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
	f := webhook.MessageFilter{ID: q.Get("id"), Endpoints: q["endpoint"], Application: q.Get("application"), Type: q.Get("type"), Key: q.Get("key"), States: q["state"]}
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
func (s *Service) messages(r *http.Request, f webhook.MessageFilter, after int64, limit int) (page webhook.MessagePage, err error) {
	if err := callerOf(r).confine(&f.Application); err != nil {
		return page, err
	}
	return s.Dispatcher.Messages(r.Context(), f, after, limit)
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

// limitOf reads how many items a page may have.
func limitOf(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return usualPage, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPage {
		return 0, fmt.Errorf("%w: limit: want 1 to %d, got %.20q", errBadRequest, maxPage, text)
	}
	return limit, nil
}

// cursor is where a list goes on, as a client has it, and cursorOf its inverse.
func cursor(next int64) string {
	if next == 0 {
		return ""
	}
	return strconv.FormatInt(next, 10)
}

// pageOf reads where a page begins and how long it is.
func pageOf(q url.Values) (after int64, limit int, err error) {
	if limit, err = limitOf(q); err == nil {
		after, err = cursorOf(q.Get("after"))
	}
	return after, limit, err
}

func cursorOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%w: after: want the next of an earlier page, got %.20q", errBadRequest, text)
	}
	return n, nil
}

// timesOf reads since and until, which are RFC 3339.
func timesOf(q url.Values) (since, until time.Time, err error) {
	for name, t := range map[string]*time.Time{"since": &since, "until": &until} {
		v := q.Get(name)
		if v == "" {
			continue
		}
		if *t, err = time.Parse(time.RFC3339, v); err != nil {
			return since, until, fmt.Errorf("%w: %s: want an RFC 3339 time such as 2026-01-31T08:00:00Z, got %.40q", errBadRequest, name, v)
		}
	}
	return since, until, nil
}
