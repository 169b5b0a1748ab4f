// Package a holds retries, and loops that look like them.
package a

import (
	"log"
	"net/http"
	"time"

	"far"
)

func send(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func counted(url string) (err error) {
	for range 3 {
		if err = send(url); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func atOnce(url string) (err error) {
	for attempt := 0; attempt < 3; attempt++ {
		if err = send(url); err == nil {
			return nil
		}
	}
	return err
}

func growing(url string, wait time.Duration) {
	for send(url) != nil {
		time.Sleep(wait)
		wait *= 2
	}
}

func recursive(url string, left int) error {
	err := send(url)
	if err != nil && left > 0 {
		time.Sleep(time.Second)
		return recursive(url, left-1)
	}
	return err
}

func jumps(url string) {
again:
	if send(url) != nil {
		time.Sleep(time.Second)
		goto again
	}
}

// consumes goes on after a success, and waits after a failure alone.
func consumes(url string, got func()) {
	for {
		if err := send(url); err != nil {
			time.Sleep(time.Second)
			continue
		}
		got()
	}
}

// What follows is no retry.

func polls(url string) error {
	for {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		if resp.Header.Get("State") == "done" {
			return nil
		}
		time.Sleep(time.Second)
	}
}

func ticks(url string) {
	for range time.Tick(time.Second) {
		if err := send(url); err != nil {
			log.Print(err)
		}
	}
}

func walks(urls []string) (err error) {
	for _, url := range urls {
		if err = send(url); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// What follows uses another package.

func gets(url string, pause time.Duration) (err error) {
	for range 3 {
		if err = far.Get(url); err == nil {
			return nil
		}
		far.Rest(pause)
	}
	return err
}

func posts(url string) (err error) {
	for range 3 {
		if err = far.Post(url); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// handsOver captures the request that a helper sends again.
func handsOver(c *http.Client, url string) error {
	req, err := http.NewRequest("PATCH", url, nil)
	if err != nil {
		return err
	}
	return far.Again(func() error {
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

// mutual calls another function to be called again.
func mutual(url string, wait time.Duration) error {
	err := send(url)
	if err != nil {
		return afterPause(url, wait)
	}
	return nil
}

func afterPause(url string, wait time.Duration) error {
	time.Sleep(wait)
	return mutual(url, 2*wait)
}

type starter struct{ name string }

// keep is started as a method value, whose receiver is no argument.
func (s *starter) keep(step func() error) {
	for {
		if err := step(); err != nil {
			log.Print(s.name, err)
		}
		time.Sleep(time.Second)
	}
}

func starts(s *starter, step func() error) {
	keep := s.keep
	go keep(step)
}
