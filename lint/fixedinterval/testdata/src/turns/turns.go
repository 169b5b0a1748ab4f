// Package turns holds loops that go on after a success: most of their waits
// pace the turns, and those that only a failure leads to are doubtful retries.
package turns

import (
	"errors"
	"net"
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

// timerSet: the failure sets the timer that begins the next attempt.
func timerSet(stop chan struct{}, jobs chan int, url string) {
	t := time.NewTimer(0)
	for { // want `FB1001: retries turns.get on failure and waits 5s every time`
		select {
		case <-stop:
			return
		case <-jobs:
		case <-t.C:
			if _, err := get(url); err != nil {
				t.Reset(5 * time.Second)
			}
		}
	}
}

// timerKept: success and failure set the timer alike.
func timerKept(stop chan struct{}, url string, got func(int)) {
	t := time.NewTimer(time.Minute)
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			if n, err := get(url); err == nil {
				got(n)
			}
			t.Reset(time.Minute)
		}
	}
}

// channelSet: a channel that only a failure makes.
func channelSet(stop, kick chan struct{}, url string, got func(int)) {
	var again <-chan time.Time
	for { // want `FB1001: retries turns.get on failure and waits 3s every time`
		select {
		case <-stop:
			return
		case <-kick:
		case <-again:
		}
		again = nil
		n, err := get(url)
		if err != nil {
			again = time.After(3 * time.Second)
			continue
		}
		got(n)
	}
}

// lengthSet: success and failure meet in one wait, which the failure has set.
func lengthSet(stop chan struct{}, url string, period func() time.Duration) {
	wait := period()
	for { // want `FB1001: retries turns.get on failure and waits 3s every time`
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
		wait = period()
		if _, err := get(url); err != nil {
			wait = 3 * time.Second
		}
	}
}

// lengthKept: the wait is chosen by something else.
func lengthKept(stop chan struct{}, url string, busy func() bool, got func(int)) {
	wait := time.Second
	for {
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
		if n, err := get(url); err == nil {
			got(n)
		}
		wait = time.Minute
		if busy() {
			wait = time.Second
		}
	}
}

var errRefused = errors.New("refused")

// Loops that ask again for an answer that is not accepted: their names tell a
// retry from a poll.

type plan struct{ steps []string }

func fetchPlan(url string) (*plan, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	return &plan{}, resp.Body.Close()
}

func retryEmpty(url string) (*plan, error) {
	for range 3 { // want `FB1001: retries turns.fetchPlan on failure and waits 1s every time`
		p, err := fetchPlan(url)
		if err == nil && len(p.steps) > 0 {
			return p, nil
		}
		time.Sleep(time.Second)
	}
	return nil, errRefused
}

// pollEmpty waits for a plan that is there.
func pollEmpty(url string) (*plan, error) {
	for range 3 {
		p, err := fetchPlan(url)
		if err == nil && len(p.steps) > 0 {
			return p, nil
		}
		time.Sleep(time.Second)
	}
	return nil, errRefused
}

// retryAll goes on after a success whatever it has yielded: its wait paces it.
func retryAll(urls []string, show func(*plan)) {
	for i := 0; i < len(urls); i++ {
		p, err := fetchPlan(urls[0])
		if err == nil {
			show(p)
		}
		time.Sleep(time.Second)
	}
}

// accepting is a server: each turn is another connection, and the pause after a
// failure to accept one is no retry of what is done with it.
func accepting(ln net.Listener, greet func(net.Conn) error, hello func() error) {
	for {
		c, err := ln.Accept()
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		if err := greet(c); err != nil {
			time.Sleep(time.Second)
			continue
		}
		if err := hello(); err != nil {
			time.Sleep(time.Second)
			continue
		}
		c.Close()
	}
}

// greeting does the same with connections that it makes.
func greeting(addr string, greet func(net.Conn) error) {
	for { // want `FB1001: retries net.Dial, others on failure and waits 1s every time`
		c, err := net.Dial("tcp", addr)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		if err := greet(c); err != nil {
			time.Sleep(time.Second)
			continue
		}
		c.Close()
	}
}

// states is a machine whose states set how long they wait; the one of a failure
// goes on at once.
func states(url string, show func(int)) {
	failing := false
	for {
		var pause time.Duration
		if _, err := get(url); err != nil {
			failing = true
		} else {
			failing, pause = false, time.Minute
		}
		if failing {
			show(1)
		}
		time.Sleep(pause)
	}
}
