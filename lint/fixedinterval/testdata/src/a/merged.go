package a

import (
	"errors"
	"io"
	"net/http"
	"time"
)

func temporary(err error) bool { return !errors.Is(err, io.ErrUnexpectedEOF) }

// A bool says whether to go on, and was made of the error and of more.

func mergedAnd(url string) (resp *http.Response, err error) {
	for range 4 { // want `FB1001: retries http.Get on failure and waits 1s every time`
		resp, err = http.Get(url)
		again := err != nil && temporary(err)
		if !again {
			return resp, err
		}
		time.Sleep(time.Second)
	}
	return nil, err
}

func mergedOr(url string) (resp *http.Response, err error) {
	for range 4 { // want `FB1001: retries http.Get on failure and waits 1s every time`
		resp, err = http.Get(url)
		ended := err == nil || !temporary(err)
		if ended {
			return resp, err
		}
		time.Sleep(time.Second)
	}
	return nil, err
}

// mergedDone goes on without a failure, until what it gets is enough: a poll.
func mergedDone(url string, enough func(*http.Response) bool) (resp *http.Response, err error) {
	for range 4 {
		resp, err = http.Get(url)
		done := err == nil && enough(resp)
		if done {
			return resp, nil
		}
		time.Sleep(time.Second)
	}
	return nil, err
}

// mergedFailed ends with a failure, and goes on to see what changes: a watch.
func mergedFailed(url string, same func(*http.Response) bool) (resp *http.Response, err error) {
	for range 4 {
		resp, err = http.Get(url)
		ended := err != nil || !same(resp)
		if ended {
			return resp, err
		}
		time.Sleep(time.Second)
	}
	return nil, err
}

// handedError: the error is one that the caller has, and nothing was attempted.
func handedError(next func() error) (err error) {
	gone := func() bool { return err != nil }
	for n := 3; n > 0 && !gone(); n-- {
		time.Sleep(time.Second)
	}
	return next()
}
