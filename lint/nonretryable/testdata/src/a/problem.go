package a

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// What a response says of its error decides, and not its status alone.

type problem struct{ Type string }

func (p problem) Error() string { return p.Type }

// ask yields a response and an error for one that refuses.
func ask(url string) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = http.Get(url); err != nil {
			wait()
			continue
		}
		if resp.StatusCode < 400 {
			return resp, nil
		}
		var p problem
		if err = json.NewDecoder(resp.Body).Decode(&p); err != nil {
			return resp, fmt.Errorf("status %d: %w (%s)", resp.StatusCode, err, os.Getenv("SERVICE"))
		}
		if resp.StatusCode < 500 {
			return resp, p
		}
		err = p
	}
	return resp, fmt.Errorf("%s: %w", os.Getenv("SERVICE"), err)
}

func renewed(url string) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = ask(url); err == nil {
			break
		}
		var p problem
		if errors.As(err, &p) && p.Type == "stale" {
			wait()
			continue
		}
		if resp == nil || resp.StatusCode < 500 {
			break
		}
		wait()
	}
	return resp, err
}

func insists(url string) (resp *http.Response, err error) {
	for range 3 { // want `FB1035: retries a.ask on status 400`
		if resp, err = ask(url); err == nil {
			break
		}
		wait()
	}
	return resp, err
}
