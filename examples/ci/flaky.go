package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// flaky plays the payments, which are busy once. It comes after a few charges that went
// well: with strict, retries are granted for traffic that there was.
func flaky() string {
	var calls atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 6 {
			fmt.Println("  payments: 503")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})).URL
}
