// Package own repeats at once what has waits of its own, and asks for credentials.
package own

import (
	"errors"
	"net/http"
	"time"
)

func put(url string) (err error) {
	for try := 0; try < 3; try++ { // want `FB1001: retries own.patient on failure without waiting at all`
		if err = patient(url); err == nil {
			return nil
		}
	}
	return err
}

// patient waits between its own attempts, and not behind the last.
func patient(url string) (err error) {
	for attempt := range 3 {
		if attempt > 0 {
			time.Sleep(schedule[attempt])
		}
		var resp *http.Response
		if resp, err = http.Head(url); err == nil {
			return resp.Body.Close()
		}
	}
	return err
}

var schedule []time.Duration

// slow waits for its turn, whatever comes of it.
func slow(url string) error {
	time.Sleep(schedule[0])
	resp, err := http.Head(url)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func turns(url string) (err error) {
	for try := 0; try < 3; try++ {
		if err = slow(url); err == nil {
			return nil
		}
	}
	return err
}

var errAuth = errors.New("who is there?")

type authError interface{ IsAuthError(error) bool }

// A refusal is answered with credentials; nothing else is sent again.
func challenged(a authError, url string) (resp *http.Response, err error) {
	for range 3 {
		resp, err = http.Get(url)
		if err == nil || !a.IsAuthError(err) {
			return resp, err
		}
	}
	return nil, errAuth
}

// A timer calls what has failed again.
type beacon struct {
	url   string
	peers []string
}

func (b *beacon) announce() {
	if len(b.peers) == 0 {
		time.AfterFunc(time.Minute, b.announce)
		return
	}
	resp, err := http.Get(b.url) // want `FB1001: retries http.Get on failure and waits 1m0s every time`
	if err != nil {
		time.AfterFunc(time.Minute, b.announce)
		return
	}
	resp.Body.Close()
}

func reconnect(url string, retries int) {
	resp, err := http.Get(url) // want `FB1001: retries http.Get on failure and waits 5s every time`
	if err == nil {
		resp.Body.Close()
	} else if retries > 0 {
		time.AfterFunc(5*time.Second, func() { reconnect(url, retries-1) })
	}
}

// What a timer calls in any case is a poll.
func (b *beacon) poll() {
	if resp, err := http.Get(b.url); err == nil {
		resp.Body.Close()
	}
	time.AfterFunc(time.Minute, b.poll)
}
