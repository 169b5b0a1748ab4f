package near

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

var errEmpty = errors.New("empty")

// queue lives in memory: that it is empty is a state, not a failure.
type queue struct {
	mu    sync.Mutex
	items []string
}

func (q *queue) take() (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return "", errEmpty
	}
	it := q.items[0]
	q.items = q.items[1:]
	return it, nil
}

func takeRetrying(q *queue) string {
	for attempt := 0; ; attempt++ {
		it, err := q.take()
		if err == nil {
			return it
		}
		time.Sleep(time.Second)
	}
}

var (
	errLockHeld = errors.New("lock held by another")
	errOverload = errors.New("overloaded")
)

// obtaining waits for somebody else to let go; every other error ends it.
func obtaining(obtain func() (*http.Response, error)) error {
	for {
		_, err := obtain()
		if err == nil {
			return nil
		}
		if !errors.Is(err, errLockHeld) {
			return err
		}
		time.Sleep(time.Second)
	}
}

// overloaded tries a server again that refused.
func overloaded(client *http.Client) error {
	for { // want `FB1001: retries http.Client.Get on failure and waits 1s every time`
		_, err := client.Get("http://example.com")
		if err == nil {
			return nil
		}
		if !errors.Is(err, errOverload) {
			return err
		}
		time.Sleep(time.Second)
	}
}

// both waits for the lock, and tries again what failed otherwise.
func both(client *http.Client) {
	for { // want `FB1001: retries http.Client.Get on failure and waits 1s every time`
		_, err := client.Get("http://example.com/lock")
		if err == nil {
			return
		}
		if errors.Is(err, errLockHeld) {
			time.Sleep(time.Second)
			continue
		}
		time.Sleep(time.Second)
	}
}
