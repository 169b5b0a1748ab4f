package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// sink is the receiver: it reads what comes and responds with 200. Below /flaky
// it responds with 503 to the first attempt of one message in ten.
type sink struct {
	server *http.Server
	addr   string
	count  atomic.Int64
	flaky  atomic.Int64
}

func newSink() (*sink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{addr: l.Addr().String()}
	s.server = &http.Server{Handler: s}
	go func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return s, nil
}

func (s *sink) url() string { return "http://" + s.addr }

func (s *sink) close() { _ = s.server.Close() }

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if r.URL.Path == flakyPath && r.Header.Get("X-Retry-Attempt") == "0" && s.flaky.Add(1)%10 == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.count.Add(1)
}

const flakyPath = "/flaky"
