package forbeartest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forbeartest"
	"github.com/forbear-go/forbear/reason"
)

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec forbeartest.Recorder
		r, err := forbear.New("payments", forbear.Policy{MaxRetries: 2}, forbear.WithObserver(rec.Observer()), forbear.WithRand(func() float64 { return 0.5 }))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Do(t.Context(), func(context.Context) error { return forbear.Retryable(errors.New("busy"), forbear.Hint{}) })
		if len(rec.Attempts()) != 3 || len(rec.Retries()) != 2 || len(rec.Stops()) != 1 || rec.Stops()[0].Reason != reason.Exhausted {
			t.Errorf("got %q", rec.Events())
		}
		if w := rec.Waits(); len(w) != 2 || w[0] != 500*time.Millisecond || w[1] != time.Second {
			t.Errorf("waits %v", w)
		}
		rec.Reset()
		if len(rec.Events())+len(rec.Attempts())+len(rec.Retries())+len(rec.Stops()) != 0 {
			t.Error("Reset left something")
		}
	})
}
