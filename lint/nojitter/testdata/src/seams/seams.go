// Package seams holds waits and verdicts behind the seams that tests and callers need.
package seams

import (
	"math"
	"net"
	"net/http"
	"time"
)

// A variable stands for the clock, so that tests can replace it.
var after = time.After

func clocked(url string) (resp *http.Response, err error) {
	wait := time.Second
	for range 5 { // want `FB1002`
		if resp, err = http.Get(url); err == nil {
			return resp, nil
		}
		<-after(wait)
		wait *= 2
	}
	return nil, err
}

// A policy that callers implement says whether to go on: after a success it does not.
type policy interface {
	ShouldRetry(resp *http.Response, err error) bool
}

func (l link) ask(p policy, line string) (err error) {
	wait := time.Second
	for { // want `FB1002`
		err = l.speak(line)
		if !p.ShouldRetry(nil, err) {
			return err
		}
		time.Sleep(wait)
		wait *= 2
	}
}

// What has a connection is a client, whatever its methods are called.
type link struct{ conn net.Conn }

func (l link) speak(line string) error {
	_, err := l.conn.Write([]byte(line))
	return err
}

// An error in a result says more than the one beside it.
type answer struct {
	Err  error
	Text string
}

type asker interface{ Ask(string) (*answer, error) }

// A literal has captured the number of the attempt.
func inside(a asker, log func(func() int)) (res *answer, err error) {
	for attempt := 0; attempt < 5; attempt++ { // want `FB1002`
		if attempt > 0 {
			time.Sleep(time.Second << attempt)
		}
		log(func() int { return attempt })
		res, err = a.Ask("retry")
		if res != nil {
			err = res.Err
		}
		if err == nil {
			break
		}
	}
	return res, err
}

// What is left of the time limits a wait.
func capped(url string, longest time.Duration) (*http.Response, error) {
	wait, start := time.Second, time.Now()
	for { // want `FB1002`
		resp, err := http.Get(url)
		if err == nil || time.Since(start) > longest {
			return resp, err
		}
		time.Sleep(min(wait, longest-time.Since(start)))
		wait = time.Duration(math.Min(float64(wait)*math.Phi, float64(time.Minute)))
	}
}

// A helper that tries again waits for itself, and not for the loop that calls it.
func reopened(d dialer, url string) (resp *http.Response, err error) {
	wait := time.Second
	for range 5 { // want `FB1002`
		if resp, err = http.Get(url); err == nil {
			return resp, nil
		}
		time.Sleep(wait)
		wait *= 2
		if err := open(d); err != nil {
			return nil, err
		}
	}
	return nil, err
}

func open(d dialer) error {
	for {
		err := d.Dial()
		if !d.Transient(err) {
			return err
		}
		time.Sleep(d.Wait())
	}
}

type dialer interface {
	Dial() error
	Transient(error) bool
	Wait() time.Duration
}
