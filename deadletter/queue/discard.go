package queue

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// Discardable returns the filter of the letters that f chooses and that can be
// discarded: those in state Dead that are there now. It refuses a filter that chooses
// everything, which a field that was left out would do, and one of another state.
func (f Filter) Discardable() (Filter, error) {
	if reflect.ValueOf(f).IsZero() {
		return f, errors.New("which letters? an empty filter would discard all of them: name some")
	}
	if f.State != "" && f.State != deadletter.Dead {
		return f, fmt.Errorf("letters in state %s cannot be discarded: choose state %s", f.State, deadletter.Dead)
	}
	f.State, f.After, f.Limit = deadletter.Dead, "", 0
	if f.Until.IsZero() {
		f.Until = time.Now().Add(time.Second) // letters that die meanwhile are others
	}
	return f, nil
}

// DiscardAll gives all letters up that a filter chooses, in bounded steps (see
// [Filter.Discardable]), and returns how many. After an error some are discarded, and
// the same call goes on.
func DiscardAll(ctx context.Context, s Store, f Filter, by, why string) (n int, err error) {
	if f, err = f.Discardable(); err != nil {
		return 0, err
	}
	for {
		step, err := s.DiscardMany(ctx, f, by, why)
		if n += step; err != nil || step == 0 {
			return n, err
		}
	}
}
