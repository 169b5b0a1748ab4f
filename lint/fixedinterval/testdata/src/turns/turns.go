// Package turns holds loops that go on after a success: most of their waits
// pace the turns, and those that only a failure leads to are doubtful retries.
package turns

import (
	"net/http"
	"time"
)

func get(url string) (int, error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// again takes up after a failure where it was: the wait is one of a retry.
func again(url string, got func(int)) {
	for { // want `FB1001: retries turns.get on failure and waits 1s every time`
		n, err := get(url)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		got(n)
	}
}

// ticking waits the same after a success and after a failure.
func ticking(url string, got func(int)) {
	for {
		if n, err := get(url); err == nil {
			got(n)
		}
		time.Sleep(time.Second)
	}
}

// tickingWhenDone waits after a success only.
func tickingWhenDone(url string, got func(int)) {
	for {
		n, err := get(url)
		if err != nil {
			continue
		}
		got(n)
		time.Sleep(time.Second)
	}
}

// names: each turn has another item, and pauses after a failure.
func names(urls map[string]string, base string, got func(int)) {
	for range urls {
		n, err := get(base)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		got(n)
	}
}

// channel: each turn has another item, that a failure uses up too.
func channel(ch <-chan string, base string, got func(int)) {
	for range ch {
		n, err := get(base)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		got(n)
	}
}

// slice: each turn has another item.
func slice(urls []string, base string, got func(int)) {
	for i := 0; i < len(urls); i++ {
		n, err := get(base)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		got(n)
	}
}
