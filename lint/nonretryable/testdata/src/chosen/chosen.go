// Package chosen holds retries whose error or callback says which responses are sent
// again.
package chosen

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

type fault struct {
	StatusCode int
	Name       string
}

func (f fault) Error() string { return f.Name }

var passing = []string{"Throttled"}

// mayPass asks for two statuses, and for names that the server gives.
func mayPass(err error) bool {
	f, ok := err.(fault)
	return ok && (f.StatusCode == 408 || f.StatusCode == 504 || slices.Contains(passing, f.Name))
}

func load(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		name, _ := io.ReadAll(resp.Body)
		return fault{resp.StatusCode, string(name)}
	}
	return nil
}

func byName(url string) (err error) {
	for range 3 {
		if err = load(url); err == nil || !mayPass(err) {
			return err
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

// again calls try for as long as that asks for it.
func again(left int, try func() (more bool, err error)) error {
	for {
		more, err := try()
		if !more || left <= 0 {
			return err
		}
		left--
		time.Sleep(rand.N(time.Second))
	}
}

func byCallback(url string) error {
	return again(3, func() (bool, error) {
		resp, err := http.Get(url)
		if err != nil {
			return true, err
		}
		defer resp.Body.Close()
		if resp.StatusCode < 300 {
			return false, nil
		}
		return resp.StatusCode == 503, fmt.Errorf("status %d", resp.StatusCode)
	})
}
