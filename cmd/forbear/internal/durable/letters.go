package durable

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// listLetters lists dead letters, masked. Letters that come or go meanwhile shift nothing:
// a page begins behind a letter and not at a number.
func (s *Service) listLetters(r *http.Request) (int, any, error) {
	f, err := filterOf(r)
	if err != nil {
		return 0, nil, err
	}
	if err := checkAfter(r, f.After, s.letter); err != nil {
		return 0, nil, err
	}
	list, err := s.DB.DeadLetters().List(r.Context(), f)
	for i := range list {
		list[i] = list[i].Mask()
	}
	return http.StatusOK, page("dead_letters", list, f.Limit, func(l deadletter.Letter) string { return l.ID }), err
}

// getLetter shows one dead letter, masked unless the caller asks to see it. When the
// reveal cannot be recorded, the response is an error and holds no payload.
func (s *Service) getLetter(r *http.Request) (int, any, error) {
	l, err := s.letter(r, r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	shown, err := s.reveal(r, l.ID)
	if !shown {
		l = l.Mask()
	}
	return http.StatusOK, l, err
}

// letter returns a dead letter that the caller may see: another application's is not
// found.
func (s *Service) letter(r *http.Request, id string) (deadletter.Letter, error) {
	l, err := s.DB.DeadLetters().Get(r.Context(), id)
	if c := callerOf(r); err == nil && c.Application != "" && l.Application != c.Application {
		err = fmt.Errorf("dead letter %q: %w", id, queue.ErrNotFound)
	}
	return l, err
}

// exportLetters streams all letters of a filter as lines of JSON, page by page: an
// export may be larger than the memory. Masking is the default here too. An error
// halfway breaks the connection: a short file must not look like a whole one.
func (s *Service) exportLetters(r *http.Request) (int, any, error) {
	f, err := filterOf(r)
	if err != nil {
		return 0, nil, err
	}
	if err := checkAfter(r, f.After, s.letter); err != nil {
		return 0, nil, err
	}
	shown, err := s.reveal(r, "export "+r.URL.Query().Encode())
	if err != nil {
		return 0, nil, err
	}
	f.Limit = queue.MaxList
	return http.StatusOK, stream{"application/jsonl", func(w io.Writer) error {
		for {
			leave, err := s.admission.looks.enter(r)
			if err != nil {
				return err
			}
			list, err := s.DB.DeadLetters().List(r.Context(), f)
			if leave(); err != nil || len(list) == 0 {
				return err
			}
			for _, l := range list {
				f.After = l.ID
				if !shown {
					l = l.Mask()
				}
				if err := queue.Export(w, l); err != nil {
					return err
				}
			}
		}
	}}, nil
}

// letterStats counts the letters, with the most frequent causes of what is dead.
func (s *Service) letterStats(r *http.Request) (int, any, error) {
	list, err := queue.StatsByCause(r.Context(), s.DB.DeadLetters(), 100)
	return http.StatusOK, map[string]any{"stats": nonNil(list)}, err
}

// because is the body of an operation that wants a reason.
type because struct {
	Reason string `json:"reason"`
}

// discardLetter gives a letter up. The reason is demanded: months later the audit
// is all that says why an event was never delivered. The store writes the audit in
// the same transaction.
func (s *Service) discardLetter(r *http.Request, body because) (int, any, error) {
	if strings.TrimSpace(body.Reason) == "" {
		return 0, nil, fmt.Errorf("%w: reason is missing: say why the letter is discarded", errBadRequest)
	}
	if err := s.DB.DeadLetters().Discard(r.Context(), r.PathValue("id"), actor(r), body.Reason); err != nil {
		return 0, nil, err
	}
	l, err := s.DB.DeadLetters().Get(r.Context(), r.PathValue("id"))
	return http.StatusOK, l.Mask(), err
}

// discardMany is the body of POST /v1/dead-letters/discard.
type discardMany struct {
	Filter queue.Filter `json:"filter"`
	Reason string       `json:"reason"`
	DryRun bool         `json:"dry_run"`
}

// discardLetters gives all letters up that a filter chooses, or counts them. The
// filter is not empty: all letters are not discarded because a field was forgotten.
func (s *Service) discardLetters(r *http.Request, body discardMany) (int, any, error) {
	f, err := body.Filter.Discardable()
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("%w: %w", errBadRequest, err)
	case body.DryRun:
		n, err := s.DB.DeadLetters().Count(r.Context(), f)
		return http.StatusOK, map[string]any{"dry_run": true, "count": n}, err
	case strings.TrimSpace(body.Reason) == "":
		return 0, nil, fmt.Errorf("%w: reason is missing: say why the letters are discarded", errBadRequest)
	}
	n, err := queue.DiscardAll(r.Context(), s.DB.DeadLetters(), f, actor(r), body.Reason)
	return http.StatusOK, map[string]any{"count": n}, err
}

// filterOf reads a filter from a query. A value that cannot be read is refused: a
// filter that is passed over would show, or redrive, too much. Times are RFC 3339,
// limits 1 to queue.MaxList.
func filterOf(r *http.Request) (queue.Filter, error) {
	q := r.URL.Query()
	f := queue.Filter{
		Queue: q.Get("queue"), Destination: q.Get("destination"), Application: q.Get("application"), Reason: q.Get("reason"), ErrorType: q.Get("error_type"),
		EventID: q.Get("event_id"), Cause: q.Get("cause"), State: deadletter.State(q.Get("state")), After: q.Get("after"),
	}
	err := callerOf(r).confine(&f.Application)
	if err != nil {
		return f, err
	}
	if f.Limit, err = limitOf(q); err != nil {
		return f, err
	}
	if f.Newest, err = boolOf(q, "newest"); err != nil {
		return f, err
	}
	if f.Since, f.Until, err = timesOf(q); err != nil {
		return f, err
	}
	return f, checkLetterState(f.State)
}

// checkAfter refuses to go on behind a letter or a redrive that is not there, or not any
// more: the list would seem to end.
func checkAfter[T any](r *http.Request, after string, find func(r *http.Request, id string) (T, error)) error {
	if after == "" {
		return nil
	}
	_, err := find(r, after)
	if errors.Is(err, queue.ErrNotFound) {
		err = fmt.Errorf("%w: after: want next of an earlier page, got %.40q, which does not exist", errBadRequest, after)
	}
	return err
}

// letterStates are those of dead letters.
var letterStates = []string{string(deadletter.Dead), string(deadletter.Redriving), string(deadletter.Resolved), string(deadletter.Discarded)}

// checkLetterState refuses a state that no letter has: nothing would be chosen by it.
func checkLetterState(s deadletter.State) error {
	if s == "" {
		return nil
	}
	return checkStates([]string{string(s)}, letterStates)
}
