package durable

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// newRedrive is the body of POST /v1/redrives. What is left out has the defaults of
// package deadletter.
type newRedrive struct {
	Filter      queue.Filter `json:"filter"`
	All         bool         `json:"all"` // the filter chooses all
	DryRun      bool         `json:"dry_run"`
	Rate        float64      `json:"rate"`
	Canary      bool         `json:"canary"`
	StopRatio   float64      `json:"stop_ratio"`
	MaxRedrives int          `json:"max_redrives"`
}

// postRedrive starts a redrive, or only counts its letters. The count comes first
// in any case: a filter that chooses nothing, or too much, is refused before a
// job exists. The count may differ from what is redriven in the end: letters come
// and go meanwhile.
func (s *Service) postRedrive(r *http.Request, n newRedrive) (int, any, error) {
	if !n.All && reflect.ValueOf(n.Filter).IsZero() {
		return 0, nil, fmt.Errorf("%w: the filter chooses all dead letters: name some, or set \"all\": true", errBadRequest)
	}
	if n.Filter.Job != "" || n.Filter.Outcome != nil {
		return 0, nil, fmt.Errorf("%w: the filter names a redrive or its outcome: choose letters by what they are", errBadRequest)
	}
	c := callerOf(r)
	if err := cmp.Or(checkLetterState(n.Filter.State), c.confine(&n.Filter.Application)); err != nil {
		return 0, nil, err
	}
	if c.Application != "" {
		if n.MaxRedrives > queue.DefaultMaxRedrives {
			return 0, nil, c.refuse(fmt.Sprintf("max_redrives of more than %d", queue.DefaultMaxRedrives))
		}
		// What it redrives is sent beside its messages, and no faster.
		a, err := s.application(r.Context(), c.Application)
		if err != nil {
			return 0, nil, err
		}
		if a.Rate > 0 {
			n.Rate = min(cmp.Or(n.Rate, queue.DefaultRate), a.Rate)
		}
	}
	n.Filter.Queue = cmp.Or(n.Filter.Queue, webhook.Queue)
	j := queue.Job{Filter: n.Filter, By: actor(r), Rate: n.Rate, Canary: n.Canary, StopRatio: n.StopRatio, MaxRedrives: n.MaxRedrives}
	plan, err := s.Redriver.Plan(r.Context(), j)
	if err != nil {
		return 0, nil, err
	}
	if n.DryRun {
		return http.StatusOK, map[string]any{"dry_run": true, "count": plan.Total}, nil
	}
	j, err = s.Redriver.Start(r.Context(), j, webhook.NewID("rdr"))
	return http.StatusAccepted, j, err
}

// listRedrives lists the redrives that the caller may see, the newest first.
func (s *Service) listRedrives(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	application, after := q.Get("application"), q.Get("after")
	limit, err := limitOf(q)
	if err = cmp.Or(err, callerOf(r).confine(&application)); err != nil {
		return 0, nil, err
	}
	if err := checkAfter(r, after, s.job); err != nil {
		return 0, nil, err
	}
	list, err := s.DB.DeadLetters().JobPage(r.Context(), application, after, limit)
	return http.StatusOK, page("redrives", list, limit, func(j queue.Job) string { return j.ID }), err
}

// getRedrive shows how far a redrive is.
func (s *Service) getRedrive(r *http.Request) (int, any, error) {
	j, err := s.job(r, r.PathValue("id"))
	return http.StatusOK, j, err
}

// job returns a redrive that the caller may see: another application's is not found.
func (s *Service) job(r *http.Request, id string) (queue.Job, error) {
	j, err := s.DB.DeadLetters().Job(r.Context(), id)
	if c := callerOf(r); err == nil && c.Application != "" && j.Filter.Application != c.Application {
		err = fmt.Errorf("redrive %q: %w", id, queue.ErrNotFound)
	}
	return j, err
}

// setRedrive pauses, resumes or cancels a redrive. One that is not there is 404,
// whatever state was asked for. A change that the job's state does not allow is 409.
func (s *Service) setRedrive(state queue.JobState) operation {
	return func(r *http.Request) (int, any, error) {
		if _, _, err := s.getRedrive(r); err != nil {
			return 0, nil, err
		}
		if err := s.DB.DeadLetters().SetJobState(r.Context(), r.PathValue("id"), state, actor(r)); err != nil {
			return 0, nil, err
		}
		return s.getRedrive(r)
	}
}

// redrive is what a redrive does with a letter.
func (s *Service) redrive(ctx context.Context, l deadletter.Letter) error {
	done, err := s.Dispatcher.Redrive(ctx, l)
	if err == nil && done {
		err = s.DB.DeadLetters().RecordRedrive(ctx, l.ID, deadletter.RedriveDelivered)
	}
	return err
}
