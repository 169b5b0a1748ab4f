package near

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// decoding: a text that cannot be decoded is no failure of an operation.
func decoding(texts func() []byte) (v state) {
	for retries := 0; retries < 5; retries++ {
		if err := json.Unmarshal(texts(), &v); err == nil {
			return v
		}
		time.Sleep(time.Second)
	}
	return v
}

type pool interface{ pick() *http.Client }

// otherClients: each attempt goes to a client that the loop obtains anew.
func otherClients(p pool, url string) (err error) {
	for retry := 0; retry < 5; retry++ {
		c := p.pick()
		var resp *http.Response
		if resp, err = c.Get(url); err == nil {
			return resp.Body.Close()
		}
	}
	return err
}

// pauseJittered waits d, or a random time instead of it.
func pauseJittered(d time.Duration) {
	if d > time.Second {
		d = rand.N(d)
	}
	time.Sleep(d)
}

func jitteredByHelper(addr string) (conn net.Conn, err error) {
	for range 3 {
		if conn, err = net.Dial("tcp", addr); err == nil {
			return conn, nil
		}
		pauseJittered(2 * time.Second)
	}
	return nil, err
}

// rounds goes through all addresses at once: a failover before it is a retry.
func rounds(addrs []string) (conn net.Conn, err error) {
	for attempt := 0; attempt < 3; attempt++ {
		for _, a := range addrs {
			if conn, err = net.Dial("tcp", a); err == nil {
				return conn, nil
			}
		}
	}
	return nil, err
}

var errConnExpired = errors.New("kept connection expired")

// keptTooLong is sent again at once, over another connection.
func keptTooLong(send func() error) (err error) {
	for retry := 0; retry < 4; retry++ {
		err = send()
		if errors.Is(err, errConnExpired) {
			continue
		}
		return err
	}
	return err
}

// signaled only waits, unless it is told to go on.
func signaled(wake chan struct{}) {
	select {
	case <-wake:
	case <-time.After(time.Second):
	}
}

func wokenByHelper(addr string, wake chan struct{}) (conn net.Conn, err error) {
	for range 3 { // want `FB1001: retries net.Dial on failure and waits 1s every time`
		if conn, err = net.Dial("tcp", addr); err == nil {
			return conn, nil
		}
		signaled(wake)
	}
	return nil, err
}

// Waits behind pointers, of which nil means that there is none.

func jitteredBehind(n int) *time.Duration {
	if n > 3 {
		return nil
	}
	d := time.Second + rand.N(time.Second)
	return &d
}

func fixedBehind(n int) *time.Duration {
	if n > 3 {
		return nil
	}
	d := time.Second
	return &d
}

func waitsBehind(addr string) (conn net.Conn, err error) {
	for n := 0; ; n++ {
		if conn, err = net.Dial("tcp", addr); err == nil {
			return conn, nil
		}
		d := jitteredBehind(n)
		if d == nil {
			return nil, err
		}
		time.Sleep(*d)
	}
}

func fixedWaitBehind(addr string) (conn net.Conn, err error) {
	for n := 0; ; n++ { // want `FB1001: retries net.Dial on failure and waits 1s every time`
		if conn, err = net.Dial("tcp", addr); err == nil {
			return conn, nil
		}
		d := fixedBehind(n)
		if d == nil {
			return nil, err
		}
		time.Sleep(*d)
	}
}
