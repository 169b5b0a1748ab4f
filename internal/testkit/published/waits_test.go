package published

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/pipetest"
)

// response is what the server sends: a status and lines of headers.
type response struct {
	status int
	lines  []string
}

// called is how a GET went.
type called struct {
	status int             // the response that the caller got
	waits  []time.Duration // between the sends
}

// get makes one call in virtual time, with a real server and client over pipes. The
// server sends the responses in turn, the last one from then on. luck is each random
// number: at 0 a backoff is 0, just below 1 it is its ceiling.
func get(t *testing.T, policy forbear.Policy, luck float64, responses ...response) (c called) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Time // the sends of a call follow each other
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			r := responses[min(len(sent), len(responses)-1)]
			sent = append(sent, time.Now())
			for _, line := range r.lines {
				name, value, _ := strings.Cut(line, ": ")
				w.Header().Add(name, value)
			}
			w.WriteHeader(r.status)
		})}
		network := pipetest.New()
		go func() { _ = server.Serve(network) }()
		base := &http.Transport{DialContext: network.Dial}
		r, err := forbear.New("published", policy, forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithRand(func() float64 { return luck }))
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{
			Transport:     httpretry.NewTransport(base, r),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		resp, err := client.Get("http://published.test/")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		base.CloseIdleConnections()
		_ = server.Close()
		c.status = resp.StatusCode
		for i := range sent[1:] {
			c.waits = append(c.waits, sent[i+1].Sub(sent[i]))
		}
	})
	return c
}

// waited reports whether the call ended with the status after these waits.
func (c called) waited(status int, waits ...time.Duration) bool {
	return c.status == status && slices.EqualFunc(c.waits, waits, func(got, want time.Duration) bool {
		return (got - want).Abs() < time.Millisecond
	})
}
