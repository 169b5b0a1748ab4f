package httpretry_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
)

// ending is an envelope that judges by a trailer.
type ending struct{}

func (ending) Begin(*forbear.State) {}

func (ending) Send(_ *http.Request, _ int, limit time.Duration) (time.Duration, error) {
	return limit, nil
}

func (ending) Classify(*http.Response) forbear.Failure {
	return forbear.Failure{Class: forbear.ClassSuccess}
}

func (ending) Ended(resp *http.Response) forbear.Failure {
	if resp.Trailer.Get("Failed") != "" {
		return forbear.Failure{Class: forbear.ClassTransient, Type: "failed", Err: errors.New("failed")}
	}
	return forbear.Failure{Class: forbear.ClassSuccess}
}

// begins is a service whose responses begin well.
type begins struct {
	body io.Reader
	more http.Header
}

func (b *begins) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Trailer: b.more, Body: io.NopCloser(b.body), Request: r}, nil
}

// TestBreakerLearnsFromTheEnd: a response that has begun well counts as what its end
// says, once; one that is left before was good.
func TestBreakerLearnsFromTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &begins{more: http.Header{"Failed": {"yes"}}}
		p := forbear.Policy{Breaker: breaker.Policy{MinCalls: 10, Probes: 3}}
		r, err := forbear.New("stream", p, forbear.WithoutLog())
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: httpretry.NewTransport(b, r, httpretry.WithEnvelope(func(*http.Request) httpretry.Envelope { return ending{} }))}
		get := func(body io.Reader) *http.Response {
			b.body = body
			resp, err := client.Get("http://stream.test/")
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		state := func(want breaker.State, when string) {
			t.Helper()
			if got := r.Breaker().State(); got != want {
				t.Fatalf("%s the breaker is %v, want %v", when, got, want)
			}
		}
		for range 5 {
			_ = get(strings.NewReader("left before its end")).Body.Close()
		}
		state(breaker.Closed, "after responses that were left")
		failed := 0
		for r.Breaker().State() == breaker.Closed && failed < 30 {
			failed++
			resp := get(strings.NewReader("whole"))
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		state(breaker.Open, "after ends that were failures")
		time.Sleep(6 * time.Second)
		for range 3 { // streams that go on and on
			body, service := io.Pipe()
			go func() { _, _ = io.WriteString(service, "first") }()
			resp := get(body)
			if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			defer service.Close()
		}
		state(breaker.Closed, "after the first bytes of three probes")
	})
}
