package parallel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestMapKeepsTheOrder(t *testing.T) {
	done := 0
	got, err := Map(t.Context(), 100, func(n, of int) {
		if done++; n != done || of != 100 {
			t.Errorf("progress says %d of %d, want %d of 100", n, of, done)
		}
	}, func(i int) (int, error) { return i * i, nil })
	if err != nil || len(got) != 100 || done != 100 || !slices.IsSorted(got) || got[99] != 99*99 {
		t.Errorf("%v, %d done: %v", err, done, got)
	}
}

// Later calls may fail sooner: the error is that of the first index all the same.
func TestMapReturnsTheFirstError(t *testing.T) {
	_, err := Map(t.Context(), 10, nil, func(i int) (int, error) {
		if i < 3 {
			return i, nil
		}
		return i, fmt.Errorf("call %d", i)
	})
	if err == nil || err.Error() != "call 3" {
		t.Errorf("got %v, want that of call 3", err)
	}
}

func TestMapEndsWithItsContext(t *testing.T) {
	why := errors.New("the user has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := Map(ctx, 1_000_000, nil, func(i int) (int, error) {
		cancel(why)
		return i, nil
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
