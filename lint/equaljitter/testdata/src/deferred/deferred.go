// Package deferred holds backoff that is drawn by one call and waited for by
// another: a durable retry, which has no loop.
package deferred

import (
	"context"
	"math/rand/v2"
	"time"
)

type message struct {
	id    string
	tries int
	next  time.Time
}

type store interface {
	Release(ctx context.Context, id string, after time.Duration) error
}

type sender interface {
	Send(context.Context, message) error
}

func released(ctx context.Context, st store, s sender, m message) error {
	if s.Send(ctx, m) == nil {
		return nil
	}
	m.tries++
	wait := min(time.Second<<min(m.tries, 10), time.Hour)
	return st.Release(ctx, m.id, wait/2+rand.N(wait/2)) // want `FB1003: keeps a wait with equal jitter for a later attempt: half of it is fixed`
}

func noted(m *message) {
	floor := time.Second << min(m.tries, 10)
	m.next = time.Now().Add(floor + rand.N(floor)) // want `FB1003`
}

func full(ctx context.Context, st store, m message) error {
	wait := min(time.Second<<min(m.tries, 10), time.Hour)
	return st.Release(ctx, m.id, rand.N(wait))
}

// A period is no backoff: processes that began together are to part.
func period(m *message, every time.Duration) {
	m.next = time.Now().Add(every/2 + rand.N(every/2))
}
