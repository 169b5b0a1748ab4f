package dispatch

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// A dispatcher that is paused sends what it has claimed and claims nothing more.
// It goes on accepting; another dispatcher finds what it accepts.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		slow := respond(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Minute / 10)
			sent.Add(1)
			return status(200)(r)
		})
		r := newRig(t, slow, webhook.Endpoint{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- r.d.Run(ctx) }()
		accept := func() {
			if _, err := r.d.Accept(t.Context(), webhook.Message{ID: webhook.NewID("m"), Endpoints: []string{"a"}, Body: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
		accept()
		time.Sleep(3 * time.Second) // it is under way
		r.d.Pause()
		r.d.Pause()
		accept()
		time.Sleep(time.Minute)
		if n := sent.Load(); n != 1 {
			t.Fatalf("%d sent, want the one that was under way", n)
		}
		other, err := New(r.d.cfg)
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- other.Run(ctx) }()
		time.Sleep(time.Minute)
		if n := sent.Load(); n != 2 {
			t.Errorf("%d sent, want 2: the other dispatcher takes the second", n)
		}
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}
