// Package hidden holds fixed waits that are not written where they are waited
// for.
package hidden

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

type caller struct {
	client *http.Client
	url    string
	stop   chan struct{}
}

func (c *caller) call() error {
	resp, err := c.client.Get(c.url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// timers come from a pool, under a name that says nothing.
func timerFor(d time.Duration) *time.Timer { return time.NewTimer(d) }

func rest(ctx context.Context, d time.Duration) bool {
	t := timerFor(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (c *caller) quiet(ctx context.Context) bool { return c.quietFor(ctx, 3*time.Second) }

func (c *caller) quietFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-c.stop:
		return false
	case <-ctx.Done():
		return false
	case <-time.After(d):
	}
	return true
}

func byTimerHelper(ctx context.Context, c *caller) error {
	for { // want `FB1001: retries hidden.caller.call on failure and waits 1s every time`
		err := c.call()
		if err == nil {
			return nil
		}
		if !rest(ctx, time.Second) {
			return err
		}
	}
}

func twoCallsDeep(ctx context.Context, c *caller) error {
	for range 10 { // want `FB1001: retries hidden.caller.call on failure and waits 3s every time`
		if err := c.call(); err == nil {
			return nil
		}
		if !c.quiet(ctx) {
			return ctx.Err()
		}
	}
	return errors.New("exhausted")
}

// pauser is an interface of which the package has one kind.
type pauser interface{ Pause() time.Duration }

type same struct{ d time.Duration }

func (s same) Pause() time.Duration { return s.d }

func newPauser() pauser { return same{time.Second} }

func onlyKind(c *caller) (err error) {
	p := newPauser()
	for range 5 { // want `FB1001: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(p.Pause())
	}
	return err
}

// drawer is an interface of which the package has two kinds, one of them random.
type drawer interface{ Draw() time.Duration }

type random struct{ d time.Duration }

func (r random) Draw() time.Duration { return rand.N(r.d) }

type always struct{ d time.Duration }

func (a always) Draw() time.Duration { return a.d }

func newDrawer(fair bool) drawer {
	if fair {
		return random{time.Second}
	}
	return always{time.Second}
}

func eitherKind(c *caller) (err error) {
	p := newDrawer(c.url == "")
	for range 5 {
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(p.Draw())
	}
	return err
}

type options struct {
	Interval time.Duration
}

func firstThatIsSet(c *caller, o options) (err error) {
	for range 9 { // want `FB1001: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(cmp.Or(o.Interval, 2*time.Second))
	}
	return err
}

type settings interface {
	Duration(key string) time.Duration
}

// readOnce: whatever the settings say, they say it once for all attempts.
func readOnce(c *caller, s settings) (err error) {
	d := s.Duration("pause")
	for range 9 { // want `FB1001: retries hidden.caller.call on failure`
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(d)
	}
	return err
}

// readAgain: what is asked for each attempt may be another wait each time.
func readAgain(c *caller, s settings) (err error) {
	for range 9 {
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(s.Duration("pause"))
	}
	return err
}

// untilDeadline: the wait is the time that is left.
func untilDeadline(c *caller, end time.Time) (err error) {
	for range 9 {
		if err = c.call(); err == nil {
			return nil
		}
		time.Sleep(max(time.Until(end), 0))
	}
	return err
}

func (c *caller) wait() time.Duration { return 2 * time.Second }
