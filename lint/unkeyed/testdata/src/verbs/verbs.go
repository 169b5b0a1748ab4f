// Package verbs has requests of a type of its own, whose method is set on the way
// to the repetition, and branches that let some methods through.
package verbs

import (
	"errors"
	"math/rand"
	"net/http"
	"time"
)

type request struct {
	client *http.Client
	method string
	url    string
	parts  bool
	sent   int
}

func (r *request) send() error {
	req, err := http.NewRequest(r.method, r.url, nil)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func again(op func() error) (err error) {
	for i := range 3 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second) << i)))
	}
	return err
}

var errMethod = errors.New("parts need a method that has a body")

// runOnce sends a write by itself, and repeats what remains.
func (r *request) runOnce(method string) error {
	r.method = method
	if method == "POST" || method == "PATCH" {
		return r.send()
	}
	return again(func() error {
		r.sent++
		return r.send()
	})
}

func (r *request) ChangeOnce() error { return r.runOnce("PATCH") }

// read refuses everything but a read.
func (r *request) read(method string) error {
	if method != "GET" {
		return errMethod
	}
	r.method = method
	return again(func() error {
		r.sent++
		return r.send()
	})
}

func (r *request) Look() error { return r.read("GET") }
func (r *request) Slip() error { return r.read("POST") }
