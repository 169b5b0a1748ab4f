package httpretry_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// countedBody counts how often it is closed.
type countedBody struct {
	io.Reader
	mu     sync.Mutex
	closed int
}

func (b *countedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed++
	return nil
}

func (b *countedBody) closes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sent is one request as a roundTrip saw it.
type sent struct {
	host   string
	header http.Header
	body   string
}

// script is a RoundTripper that plays its steps, the last one for ever, and
// records what it was sent. Like net/http it reads and closes each body.
type script struct {
	steps []step

	mu   sync.Mutex
	sent []sent
}

// step answers one request.
type step func(*http.Request) (*http.Response, error)

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	got := sent{host: req.URL.Host, header: req.Header.Clone()}
	if req.Body != nil {
		data, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		got.body = string(data)
	}
	s.mu.Lock()
	s.sent = append(s.sent, got)
	next := s.steps[min(len(s.sent), len(s.steps))-1]
	s.mu.Unlock()
	return next(req)
}

func (s *script) requests() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// status answers with a status, "Name: value" lines, and a body that names it.
func status(code int, lines ...string) step {
	for i, line := range lines {
		lines[i] = strings.Replace(line, ": ", ":", 1)
	}
	return func(req *http.Request) (*http.Response, error) {
		text := http.StatusText(code)
		return &http.Response{
			StatusCode: code, Status: text, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: fields(lines...), ContentLength: int64(len(text)),
			Body: io.NopCloser(strings.NewReader(text)), Request: req,
		}, nil
	}
}

func fail(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// over returns a transport with the policy over the script.
func over(t testing.TB, s *script, p forbear.Policy, opts ...httpretry.Option) http.RoundTripper {
	t.Helper()
	return httpretry.NewTransport(s, quiet(t, p), opts...)
}

// attempts returns the X-Retry-Attempt of each request sent.
func (s *script) attempts() string {
	var numbers []string
	for _, r := range s.requests() {
		numbers = append(numbers, strings.Join(r.header[httpretry.HeaderAttempt], "+"))
	}
	return strings.Join(numbers, " ")
}

// bare returns the options of a transport that adds the least to a request.
func bare() []httpretry.Option {
	return []httpretry.Option{httpretry.WithoutAttemptHeader(), httpretry.WithoutAttemptTimeout()}
}
