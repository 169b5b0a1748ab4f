package a

import (
	"net"
	"time"
)

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
