// Package libs builds schedules of retry libraries.
package libs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	retrygo "github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v4"
	"github.com/sethvargo/go-retry"
)

func op() error { return nil }

func constant() error {
	return backoff.Retry(op, backoff.NewConstantBackOff(time.Second)) // want `FB1001: backoff.NewConstantBackOff waits the same time`
}

func literal() backoff.BackOff {
	return &backoff.ConstantBackOff{Interval: time.Second} // want `FB1001: backoff.ConstantBackOff waits the same time`
}

func exponential() error { return backoff.Retry(op, backoff.NewExponentialBackOff()) }

func fixedDelay() error {
	return retrygo.Do(op, retrygo.DelayType(retrygo.FixedDelay)) // want `FB1001: retry.FixedDelay waits the same time`
}

func combined() error {
	return retrygo.Do(op, retrygo.DelayType(retrygo.CombineDelay(retrygo.FixedDelay, retrygo.RandomDelay)))
}

func defaults() error { return retrygo.Do(op) }

func seth(ctx context.Context) error {
	return retry.Do(ctx, retry.WithMaxRetries(3, retry.NewConstant(time.Second)), func(context.Context) error { return nil }) // want `FB1001: a constant backoff`
}

func sethJittered(ctx context.Context) error {
	b := retry.WithJitterPercent(50, retry.NewConstant(time.Second))
	return retry.Do(ctx, b, func(context.Context) error { return nil })
}

type job struct{ state string }

func status(id int) (job, error) { return job{}, nil }

// A poll goes on after a success: its interval may be fixed.
func polls(id int) error {
	return backoff.Retry(func() error {
		j, err := status(id)
		if err != nil {
			return err
		}
		if j.state != "done" {
			return errors.New("not yet")
		}
		return nil
	}, backoff.NewConstantBackOff(time.Second))
}

// What is not there yet is no failure either, however the error of the call is
// handled; a retry of the same call is.
func retries(id int) error {
	return backoff.Retry(func() error {
		j, err := status(id)
		if err != nil {
			return fmt.Errorf("job %d (%s): %w", id, j.state, err)
		}
		return nil
	}, backoff.NewConstantBackOff(time.Second)) // want `FB1001: backoff.NewConstantBackOff waits the same time`
}

// The failure is in the status.
func refused(url string) error {
	return backoff.Retry(func() error {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New("refused")
		}
		return nil
	}, backoff.NewConstantBackOff(time.Second)) // want `FB1001: backoff.NewConstantBackOff waits the same time`
}
