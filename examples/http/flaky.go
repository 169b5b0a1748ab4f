package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
)

// flaky starts the service that main calls, and returns its address.
func flaky() string {
	s := &service{paid: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/17", s.order)
	mux.HandleFunc("POST /payments", s.pay)
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("  service: closed for maintenance, come back in two minutes")
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	return httptest.NewServer(mux).URL
}

type service struct {
	mu   sync.Mutex
	gets int
	paid map[string]int // payment by idempotency key
}

// order fails twice.
func (s *service) order(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gets++; s.gets <= 2 {
		fmt.Println("  service: 503")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, `{"order": 17, "open": true}`)
}

// pay books each key once. Its first response is lost on the way.
func (s *service) pay(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	if n, known := s.paid[key]; known {
		fmt.Println("  service: this key is known, nothing is booked")
		_, _ = fmt.Fprintf(w, `{"payment": %d}`, n)
		return
	}
	s.paid[key] = len(s.paid) + 1
	fmt.Println("  service: payment booked, and the connection breaks")
	panic(http.ErrAbortHandler)
}
