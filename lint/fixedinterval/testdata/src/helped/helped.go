// Package helped retries through helpers of a library that no table knows.
package helped

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"retrykit"
)

func send() error {
	resp, err := http.Get("https://example.com")
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

type task struct{}

func (task) Do(context.Context) error { return send() }

func fixed(ctx context.Context, pause time.Duration) {
	_ = retrykit.Again(3, time.Second, send)                           // want `FB1001: retries through retrykit.Again, which waits the same time after every failure`
	_ = retrykit.Again(3, pause, send)                                 // want `FB1001: retries through retrykit.Again`
	_ = retrykit.Quick(send)                                           // want `FB1001: retries through retrykit.Quick`
	_ = retrykit.Named("a", func(string) error { return send() })      // want `FB1001: retries through retrykit.Named`
	_ = retrykit.Run(ctx, task{}, time.Second)                         // want `FB1001: retries through retrykit.Run`
	_ = retrykit.New(retrykit.Options{Pause: time.Second}).Retry(send) // want `FB1001: retries through retrykit.Retrier.Retry`
	again := retrykit.New(retrykit.Options{Pause: time.Second}).Retry  //
	_ = again(func() error { return send() })                          // want `FB1001: retries through retrykit.Retrier.Retry`
}

// Each of these waits in another way, or attempts nothing again.
func otherwise(r *retrykit.Retrier) {
	_ = retrykit.Again(3, rand.N(time.Second), send)
	_ = retrykit.Doubling(time.Second, send)
	_ = retrykit.Spread(time.Second, send)
	_ = retrykit.Once(time.Second, send)
	_ = retrykit.Until(time.Second, func() (bool, error) { return true, send() })
	_ = r.Decided(send)
}
