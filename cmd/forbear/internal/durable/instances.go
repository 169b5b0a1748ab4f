package durable

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/sqlstore"
)

// How often an instance says that it is there, and how long the others believe it.
const (
	seenEvery = 30 * time.Second
	seenFor   = 100 * time.Second
)

// beSeen makes this process known to those that share its database, until ctx ends. A
// process that accepts nothing any more, and finishes, is known until then.
func (s *Service) beSeen(ctx context.Context) {
	for {
		if err := s.DB.PutInstance(ctx, s.instance, seenFor); err != nil && ctx.Err() == nil {
			s.log.Warn("the other processes do not learn of this one", slog.String("error", err.Error()))
		}
		if !wait.Sleep(ctx, wait.Jitter(seenEvery)) {
			break
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = s.DB.RemoveInstance(end, s.instance.Owner) // otherwise it is known for a while more
}

// shownInstance is an instance as the API has it.
type shownInstance struct {
	sqlstore.Instance

	Self bool `json:"self,omitempty"`
}

// listInstances lists the processes that share the database, this one among them.
func (s *Service) listInstances(r *http.Request) (int, any, error) {
	list, err := s.DB.Instances(r.Context())
	shown := make([]shownInstance, len(list))
	for i := range list {
		shown[i] = shownInstance{list[i], list[i].Owner == s.instance.Owner}
	}
	return http.StatusOK, map[string]any{"instances": shown}, err
}
