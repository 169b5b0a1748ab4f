package brokertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/deadletter"
)

// letters is a dead-letter queue that can be down. It drops a letter whose
// id it has, as the contract of consume.DeadLetters demands.
type letters struct {
	mu      sync.Mutex
	down    bool
	refused int
	list    []deadletter.Letter
}

// Put implements consume.DeadLetters.
func (l *letters) Put(_ context.Context, x deadletter.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A queue that is down fails at once: an adapter's own time-outs are
	// not under test.
	if l.down {
		l.refused++
		return errors.New("queue is down")
	}
	if !slices.ContainsFunc(l.list, func(y deadletter.Letter) bool { return x.ID == y.ID }) {
		l.list = append(l.list, x)
	}
	return nil
}

// set takes the queue down or brings it up.
func (l *letters) set(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// refusals counts the letters that were refused while it was down.
func (l *letters) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// all returns the letters in the order of their arrival.
func (l *letters) all() []deadletter.Letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func (l *letters) count() int { return len(l.all()) }

// only returns the single letter, and stops the test when there are none or
// several.
func (l *letters) only(t *testing.T) deadletter.Letter {
	t.Helper()
	all := l.all()
	if len(all) != 1 {
		t.Fatalf("%d dead letters, want 1", len(all))
	}
	return all[0]
}
