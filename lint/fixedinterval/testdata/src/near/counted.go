package near

import (
	"errors"
	"log"
	"math/rand/v2"
	"net"
	"time"
)

type dialer struct {
	// Pause is how long to wait; five seconds by default.
	Pause func() time.Duration
}

func newDialer(d dialer) *dialer {
	if d.Pause == nil {
		d.Pause = func() time.Duration { return 5 * time.Second }
	}
	return &d
}

// dial counts nothing, and its users may replace the wait: a warning at most.
func (d *dialer) dial(addr string) net.Conn {
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c
		}
		time.Sleep(d.Pause())
	}
}

type feed interface{ Next() (string, error) }

const pause = 3 * time.Second

// read counts what it has read, and not its attempts; and the error that it may
// find while it waits names no wait for after an error.
func read(f feed, got func(string, int), waitErr func() error) error {
	for n := 0; ; n++ {
		s, err := f.Next()
		if err != nil {
			time.Sleep(pause)
			if err := waitErr(); err != nil {
				return err
			}
			continue
		}
		got(s, n)
	}
}

type table struct{ flush chan []string }

var errFull = errors.New("no room")

// makeRoom hands what is there to another goroutine of the process.
func (t *table) makeRoom(rows []string) error {
	select {
	case t.flush <- rows:
		return nil
	default:
		return errFull
	}
}

// put counts how long it waits for room: what it waits for is no other service.
func (t *table) put(rows []string) error {
	var err error
	var n int
	for err = t.makeRoom(rows); err == errFull; err = t.makeRoom(rows) {
		n++
		if n%100 == 0 {
			log.Print("making room")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// dialSlowly waits between its attempts, and what calls it waits by it.
func dialSlowly(addr string) (c net.Conn, err error) {
	for retry := range 3 {
		if c, err = net.Dial("tcp", addr); err == nil {
			return c, nil
		}
		time.Sleep(rand.N(time.Second << retry))
	}
	return nil, err
}

func dialMoreSlowly(addr string) (c net.Conn, err error) {
	for retry := 0; retry < 3; retry++ {
		if c, err = dialSlowly(addr); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// Options has a pause that is random unless it is set.
type Options struct {
	RetryPause func(attempt int) time.Duration
}

type transport struct {
	retryPause func(attempt int) time.Duration
}

func newTransport(o Options) *transport {
	if o.RetryPause == nil {
		o.RetryPause = func(attempt int) time.Duration { return rand.N(time.Second << attempt) }
	}
	return &transport{retryPause: o.RetryPause}
}

func (t *transport) dial(addr string) (c net.Conn, err error) {
	for attempt := 0; attempt < 3; attempt++ {
		if c, err = net.Dial("tcp", addr); err == nil {
			return c, nil
		}
		if t.retryPause != nil {
			time.Sleep(t.retryPause(attempt))
		}
	}
	return nil, err
}

// fill makes so many connections, and lets some of them fail.
func fill(addr string, size int, retry chan<- struct{}, add func(net.Conn)) {
	for i := 0; i < size-1; i++ {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			retry <- struct{}{}
			time.Sleep(100 * time.Millisecond)
			continue
		}
		add(c)
	}
}
