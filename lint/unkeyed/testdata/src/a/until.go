package a

import (
	"errors"
	"math/rand"
	"net/http"
	"strings"
	"time"
)

// untilDone calls a function until it says that it is done.
func untilDone(steps int, done func() (bool, error)) error {
	for ; steps > 0; steps-- {
		if ok, err := done(); err != nil || ok {
			return err
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second))))
	}
	return errors.New("not done")
}

// retried says "not done" of what has failed for a while, so that it retries by a
// helper that waits.
func retried(send func() error, passing func(error) bool) (err error) {
	_ = untilDone(5, func() (bool, error) {
		err = send()
		if passing(err) {
			return false, nil
		}
		return true, err
	})
	return err
}

func postRetried(url string) error {
	return retried(func() error { // want `FB1030: retries POST through a.retried`
		resp, err := http.Post(url, "text/plain", strings.NewReader("x"))
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}, func(err error) bool { return err != nil })
}

// inState waits for a state, and hands each failure on.
func inState(ask func() (string, error), state string) error {
	return untilDone(5, func() (bool, error) {
		s, err := ask()
		if err != nil {
			return false, err
		}
		if s != state {
			return false, nil
		}
		return true, nil
	})
}

func postForState(url string) error {
	return inState(func() (string, error) {
		resp, err := http.Post(url, "text/plain", strings.NewReader("?"))
		if err != nil {
			return "", err
		}
		return resp.Header.Get("State"), resp.Body.Close()
	}, "up")
}
