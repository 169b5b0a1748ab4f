package a

import (
	"net"
	"time"
)

type dialer struct {
	// Pause is how long to wait after some attempts; five seconds by default.
	Pause func(attempts int) time.Duration
}

func newDialer(d dialer) *dialer {
	if d.Pause == nil {
		d.Pause = func(int) time.Duration { return 5 * time.Second }
	}
	return &d
}

// dial numbers its attempts, which speaks as much for a retry as a limit does.
func (d *dialer) dial(addr string) net.Conn {
	for n := 0; ; n++ { // want `FB1001: retries net.Dial on failure`
		if c, err := net.Dial("tcp", addr); err == nil {
			return c
		}
		time.Sleep(d.Pause(n))
	}
}

type feed interface{ Next() (string, error) }

const pauseOnError = 3 * time.Second

// read goes on after a success, and pauses for as long as the name of the wait
// says that a failure takes.
func read(f feed, got func(string)) {
	for { // want `FB1001: retries a.feed.Next on failure and waits 3s every time`
		s, err := f.Next()
		if err != nil {
			time.Sleep(pauseOnError)
			continue
		}
		got(s)
	}
}

// register is paced by a ticker, but counts its attempts and says what they are.
func register(addr string, maxAttempts int) net.Conn {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for attempt := 0; attempt < maxAttempts; attempt++ { // want `FB1001: retries net.Dial on failure and waits 1s every time`
		if c, err := net.Dial("tcp", addr); err == nil {
			return c
		}
		<-t.C
	}
	return nil
}

// dialAtOnce tries again without a pause, and so does what calls it.
func dialAtOnce(addr string) (c net.Conn, err error) {
	for retry := 0; retry < 3; retry++ { // want `FB1001: retries net.Dial on failure without waiting at all`
		if c, err = net.Dial("tcp", addr); err == nil {
			return c, nil
		}
	}
	return nil, err
}

func dialMore(addr string) (c net.Conn, err error) {
	for retry := 0; retry < 3; retry++ { // want `FB1001: retries a.dialAtOnce on failure without waiting at all`
		if c, err = dialAtOnce(addr); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// Options has a pause that nobody sets by default.
type Options struct {
	RetryPause func(attempt int) time.Duration
}

type transport struct {
	retryPause func(attempt int) time.Duration
}

func newTransport(o Options) *transport { return &transport{retryPause: o.RetryPause} }

func (t *transport) dial(addr string) (c net.Conn, err error) {
	for attempt := 0; attempt < 3; attempt++ { // want `FB1001: retries net.Dial on failure without waiting at all`
		if c, err = net.Dial("tcp", addr); err == nil {
			return c, nil
		}
		if t.retryPause != nil {
			time.Sleep(t.retryPause(attempt))
		}
	}
	return nil, err
}

// keep goes on after a success, and counts its failures alone.
func keep(addr string, retries int, use func(net.Conn)) {
	for failures := 0; failures < retries; { // want `FB1001: retries net.Dial on failure and waits 100ms every time`
		c, err := net.Dial("tcp", addr)
		if err != nil {
			failures++
			time.Sleep(100 * time.Millisecond)
			continue
		}
		use(c)
	}
}
