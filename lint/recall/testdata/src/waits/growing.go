package waits

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"
	goretry "github.com/sethvargo/go-retry"
)

// case doubling variable: FB1002

func Accept(l net.Listener, dial func() (net.Conn, error)) (net.Conn, error) {
	delay := 5 * time.Millisecond
	for {
		c, err := dial()
		if err == nil {
			return c, nil
		}
		time.Sleep(delay)
		if delay *= 2; delay > time.Second {
			return nil, err
		}
	}
}

// case shift: FB1002

func Put(c *http.Client, req *http.Request) error {
	var err error
	for i := 0; i < 6; i++ {
		var resp *http.Response
		if resp, err = c.Do(req); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(time.Duration(1<<uint(i)) * 100 * time.Millisecond)
	}
	return err
}

// case power: FB1002

func Query(ctx context.Context, q func(context.Context) error) error {
	for n := 1; n <= 5; n++ {
		err := q(ctx)
		if err == nil {
			return nil
		}
		wait := time.Duration(math.Pow(2, float64(n))) * time.Second
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(wait):
		}
	}
	return errors.New("five times in vain")
}

// case linear: FB1002

func Save(write func([]byte) error, b []byte) (err error) {
	for i := range 5 {
		if err = write(b); err == nil {
			return nil
		}
		time.Sleep(time.Duration(i+1) * time.Second)
	}
	return err
}

// case table: FB1002

var steps = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute}

func Deliver(send func() error) error {
	var err error
	for _, d := range steps {
		if err = send(); err == nil {
			return nil
		}
		time.Sleep(d)
	}
	return err
}

// case delay in a helper: FB1002

func delayFor(attempt int, base, cap time.Duration) time.Duration {
	d := base
	for range attempt {
		d *= 2
		if d > cap {
			return cap
		}
	}
	return d
}

func Sync(c *http.Client, req *http.Request) (resp *http.Response, err error) {
	for i := 0; i < 5; i++ {
		if resp, err = c.Do(req); err == nil {
			return resp, nil
		}
		time.Sleep(delayFor(i, 50*time.Millisecond, time.Second))
	}
	return nil, err
}

// case own backoff type: FB1002

type expo struct {
	cur, max time.Duration
}

func (e *expo) next() time.Duration {
	d := e.cur
	e.cur = min(e.cur*2, e.max)
	return d
}

func Hold(ctx context.Context, addr string) (net.Conn, error) {
	b := &expo{cur: 100 * time.Millisecond, max: 10 * time.Second}
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c, nil
		}
		if err := sleepCtx(ctx, b.next()); err != nil {
			return nil, err
		}
	}
}

// case recursion that doubles: FB1002

func climb(f func() error, n int, d time.Duration) error {
	err := f()
	if err == nil || n == 0 {
		return err
	}
	time.Sleep(d)
	return climb(f, n-1, 2*d)
}

// case delay in the receiver: FB1002

type client struct {
	backoff time.Duration
	addr    string
	conn    net.Conn
}

func (c *client) run(stop <-chan struct{}) {
	c.backoff = time.Second
	for {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			select {
			case <-stop:
				return
			case <-time.After(c.backoff):
			}
			c.backoff = c.backoff * 3 / 2
			continue
		}
		c.conn = conn
		return
	}
}

// case cenkalti constant: FB1001

func CenkaltiConstant(op func() error) error {
	return backoff.Retry(op, backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 5))
}

// case cenkalti without randomization: FB1002

func CenkaltiBare(op func() error) error {
	b := backoff.NewExponentialBackOff()
	b.RandomizationFactor = 0
	return backoff.Retry(op, b)
}

// case avast fixed, option through a variable: FB1001

func AvastFixed(op func() error) error {
	opts := []retry.Option{retry.Attempts(3), retry.Delay(time.Second)}
	opts = append(opts, retry.DelayType(retry.FixedDelay))
	return retry.Do(op, opts...)
}

// case avast without jitter: FB1002

func AvastBare(op func() error) error {
	return retry.Do(op, retry.DelayType(retry.BackOffDelay))
}

// case sethvargo constant: FB1001

func SethvargoConstant(ctx context.Context, f func(context.Context) error) error {
	b := goretry.NewConstant(time.Second)
	return goretry.Do(ctx, goretry.WithMaxRetries(3, b), f)
}

// case sethvargo bare: FB1002

func SethvargoBare(ctx context.Context, f func(context.Context) error) error {
	return goretry.Do(ctx, goretry.WithCappedDuration(time.Minute, goretry.NewFibonacci(time.Second)), f)
}

// case retryablehttp default: FB1002

func Retryable() *http.Client {
	c := retryablehttp.NewClient()
	c.RetryMax = 3
	return c.StandardClient()
}
