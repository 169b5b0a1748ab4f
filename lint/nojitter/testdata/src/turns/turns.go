// Package turns holds loops that go on after a success, with a wait that grows
// from failure to failure.
package turns

import (
	"net"
	"net/http"
	"time"
)

func get(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// growing and taken back: a success begins anew.
func growing(stop chan struct{}, url string) {
	wait := time.Second
	for { // want `FB1002: retries turns.get on failure`
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
		if err := get(url); err != nil {
			wait = min(2*wait, time.Minute)
		} else {
			wait = time.Second
		}
	}
}

// counted: the wait is computed from the number of failures.
func counted(url string) {
	fails := 0
	for { // want `FB1002: retries turns.get on failure`
		if err := get(url); err != nil {
			fails++
		} else {
			fails = 0
		}
		time.Sleep(time.Second << fails)
	}
}

// turnsCounted: the wait grows with each turn, whether it fails or not.
func turnsCounted(url string, got func()) {
	for n := 0; ; n++ {
		if err := get(url); err == nil {
			got()
		}
		time.Sleep(time.Second << n)
	}
}

type steps struct{ wait time.Duration }

func (s *steps) Next() time.Duration { s.wait *= 2; return s.wait }
func (s *steps) Reset()              { s.wait = time.Second }

// resetBySuccess: both wait, and only a success takes the backoff back.
func resetBySuccess(url string, s *steps) {
	for { // want `FB1002: retries turns.get on failure`
		if err := get(url); err == nil {
			s.Reset()
		}
		time.Sleep(s.Next())
	}
}

// accepting is a server: each turn is another connection, and the pause after a
// failure to accept one is no retry of what is done with it.
func accepting(ln net.Listener, shake, greet func(net.Conn) error) {
	failures := 0
	for {
		c, err := ln.Accept()
		if err != nil {
			failures++
			time.Sleep(time.Duration(failures) * time.Second)
			continue
		}
		failures = 0
		if err := shake(c); err != nil {
			continue
		}
		if err := greet(c); err != nil {
			c.Close()
		}
	}
}
