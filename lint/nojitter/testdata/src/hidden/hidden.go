// Package hidden holds growing waits whose growth is not written where they are
// waited for.
package hidden

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"time"
)

type caller struct {
	client *http.Client
	url    string
}

func (c *caller) call() error {
	resp, err := c.client.Get(c.url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// doubling keeps its state in a field.
type doubling struct {
	current, most time.Duration
	tries         int
}

func (d *doubling) Next() time.Duration {
	now := d.current
	d.current = min(2*d.current, d.most)
	return now
}

func (d *doubling) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.Next()):
		return nil
	}
}

func (d *doubling) Pause() <-chan time.Time {
	d.tries++
	return time.After(time.Duration(d.tries) * time.Second)
}

func (d *doubling) Of(attempt int) time.Duration { return min(d.current<<attempt, d.most) }

func byNext(c *caller) (err error) {
	b := &doubling{current: time.Second, most: time.Minute}
	for range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(b.Next())
	}
	return err
}

func byWait(ctx context.Context, c *caller, b *doubling) (err error) {
	for range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		if err := b.Wait(ctx); err != nil {
			return err
		}
	}
	return err
}

func byChannel(ctx context.Context, c *caller, b *doubling) (err error) {
	for range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.Pause():
		}
	}
	return err
}

func byNumber(c *caller, b doubling) (err error) {
	for i := range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(b.Of(i))
	}
	return err
}

// raised has one method that raises the wait, and another one that reads it.
type raised struct{ wait, step time.Duration }

func (r *raised) failed()              { r.wait = 3 * r.wait / 2 }
func (r *raised) delay() time.Duration { return r.wait }
func (r *raised) every() time.Duration { return r.step }

func raisedElsewhere(c *caller, r *raised) (err error) {
	for range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		r.failed()
		time.Sleep(r.delay())
	}
	return err
}

// scaled once, when the settings are read: the loop waits the same every time.
func (r *raised) normalize() { r.step = r.step * time.Second }

func scaledBefore(c *caller, r *raised) (err error) {
	r.normalize()
	for range 5 {
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(r.every())
	}
	return err
}

// spread is drawn by the method that raises it.
type spread struct{ wait time.Duration }

func (s *spread) failed()              { s.wait = rand.N(2*s.wait + 1) }
func (s *spread) delay() time.Duration { return s.wait }

func drawnElsewhere(c *caller, s *spread) (err error) {
	for range 5 {
		if err = c.call(); err == nil {
			return nil
		}
		s.failed()
		time.Sleep(s.delay())
	}
	return err
}

// sequence returns a function that grows from call to call.
func sequence(from time.Duration) func() time.Duration {
	return func() time.Duration {
		now := from
		from *= 2
		return now
	}
}

func byClosure(c *caller) (err error) {
	next := sequence(time.Second)
	for range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(next())
	}
	return err
}

// cutOff: a random fraction of a second is lost where whole seconds are counted.
func cutOff(c *caller) (err error) {
	for i := range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(time.Duration(math.Pow(2, float64(i))+rand.Float64()) * time.Second)
	}
	return err
}

// kept: the fraction is one of nanoseconds only when it is scaled before.
func kept(c *caller) (err error) {
	for i := range 5 {
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(time.Duration((math.Pow(2, float64(i)) + rand.Float64()) * float64(time.Second)))
	}
	return err
}

// keeper keeps the next step in a field beside the client: no item of a queue.
type keeper struct {
	caller
	steps *doubling
	wait  time.Duration
}

func stepped(k *keeper) (err error) {
	for range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = k.call(); err == nil {
			return nil
		}
		k.wait = k.steps.Next()
		time.Sleep(k.wait)
	}
	return err
}

// Helpers that wait longer with the number of the attempt that they are given.

// waitFor waits below a helper of its own.
func waitFor(base time.Duration, n int, stop <-chan struct{}) bool { return waitUpTo(base, 0, n, stop) }

func waitUpTo(base, most time.Duration, n int, stop <-chan struct{}) bool {
	d := time.Duration(float64(base) * math.Pow(2, float64(n)))
	if most > 0 && d > most {
		d = most
	}
	select {
	case <-time.After(d):
		return true
	case <-stop:
		return false
	}
}

func byHelper(c *caller, base time.Duration, stop <-chan struct{}) (err error) {
	for n := range 5 { // want `FB1002: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		if !waitFor(base, n, stop) {
			return err
		}
	}
	return err
}

// sameByHelper is given the same number each time.
func sameByHelper(c *caller, base time.Duration, stop <-chan struct{}) (err error) {
	for range 5 {
		if err = c.call(); err == nil {
			return nil
		}
		if !waitFor(base, 2, stop) {
			return err
		}
	}
	return err
}

// waitAbout draws what waitFor doubles.
func waitAbout(base time.Duration, n int) { time.Sleep(rand.N(base << n)) }

func drawnByHelper(c *caller, base time.Duration) (err error) {
	for n := range 5 {
		if err = c.call(); err == nil {
			return nil
		}
		waitAbout(base, n)
	}
	return err
}
