package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// CauseStat counts the dead letters of one queue, reason and cause, and describes
// the latest of them. Cause is empty for letters of versions that kept none: they are
// counted together.
type CauseStat struct {
	Cause       string    `json:"cause"`
	Queue       string    `json:"queue"`
	Reason      string    `json:"reason"`
	Destination string    `json:"destination,omitempty"`
	ErrorType   string    `json:"error_type,omitempty"`
	Count       int       `json:"count"`
	Oldest      time.Time `json:"oldest,omitzero"`
	Newest      time.Time `json:"newest,omitzero"`
	Letter      string    `json:"letter"` // its id
	// Error is its error as [deadletter.Letter.Mask] shows it.
	Error string `json:"error,omitempty"`
}

// Latest takes over what l says, as that of the latest letter. Stores call it.
func (c *CauseStat) Latest(l deadletter.Letter) {
	l = l.Mask()
	c.Cause, c.Queue, c.Reason, c.Destination, c.ErrorType = l.Cause, l.Queue, l.Reason, l.Destination, l.ErrorType
	c.Newest, c.Letter, c.Error = l.DeadAt, l.ID, cmp.Or(l.Panic, l.Error)
}

// Compare orders by count, the largest first.
func (c CauseStat) Compare(o CauseStat) int {
	return cmp.Or(cmp.Compare(o.Count, c.Count), cmp.Compare(c.Queue, o.Queue), cmp.Compare(c.Reason, o.Reason), cmp.Compare(c.Cause, o.Cause))
}

// StatsByCause returns the statistics of a store with the causes of what is dead, up
// to limit of them.
func StatsByCause(ctx context.Context, s Store, limit int) ([]Stat, error) {
	var causes []CauseStat
	var because error
	var wg sync.WaitGroup
	wg.Go(func() { causes, because = s.Causes(ctx, limit) }) // both look at all letters
	list, err := s.Stats(ctx)
	wg.Wait()
	if err = errors.Join(err, because); err != nil {
		return nil, err
	}
	for _, c := range causes {
		if i := slices.IndexFunc(list, func(s Stat) bool { return s.Queue == c.Queue && s.Reason == c.Reason && s.State == deadletter.Dead }); i >= 0 {
			list[i].Causes = append(list[i].Causes, c)
		}
	}
	return list, err
}
