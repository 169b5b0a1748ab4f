// Package signals retries through helpers that end at errors of their own kinds.
package signals

import (
	"errors"
	"fmt"
	"net/http"

	"retrykit"
)

func get(url string) (*http.Response, error) { return http.Get(url) }

// fetch fails alike for all statuses.
func fetch(url string) error {
	resp, err := get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("refused")
	}
	return nil
}

// marked tells final statuses from others.
func marked(url string) error {
	resp, err := get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return errors.New("outage")
	}
	if resp.StatusCode != http.StatusOK {
		return retrykit.Permanent(errors.New("refused"))
	}
	return nil
}

func wrapper(url string) {
	_ = retrykit.Do(func() error { return marked(url) })
	_ = retrykit.Over(func() error { return marked(url) })
	_ = retrykit.Do(func() error {
		if err := marked(url); err != nil {
			return fmt.Errorf("get: %w", err)
		}
		return nil
	})
}

func sentinel(url string) {
	retrykit.Loop(func() error {
		resp, err := get(url)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return retrykit.ErrStop
		}
		return nil
	})
}

func chosen(url string) {
	_ = retrykit.Chosen(func() error { return fetch(url) }) // want `FB1035: retries through retrykit.Chosen on status 400`
	_ = retrykit.Odd(func() error { return fetch(url) })
}

func answered(url string) error {
	resp, err := get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &retrykit.Answered{Code: resp.StatusCode}
	}
	return nil
}

func byStatus(url string) {
	_ = retrykit.ByCode(func() error { return answered(url) })
	_ = retrykit.ByType(func() error { return answered(url) }) // want `FB1035: retries through retrykit.ByType on status 400`
}
