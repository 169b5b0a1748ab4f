package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// plain is a server that does next to nothing: it reads a request without a
// body and responds with 128 bytes and the status of the moment.
type plain struct {
	l        net.Listener
	status   atomic.Int64
	requests atomic.Int64
}

func newPlain() (*plain, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &plain{l: l}
	u.status.Store(http.StatusOK)
	go u.serve()
	return u, nil
}

func (u *plain) addr() string { return u.l.Addr().String() }

func (u *plain) close() { _ = u.l.Close() }

func (u *plain) serve() {
	for {
		c, err := u.l.Accept()
		if err != nil {
			return
		}
		go u.respond(c)
	}
}

func (u *plain) respond(c net.Conn) {
	defer c.Close()
	responses := map[int64][]byte{}
	for _, status := range []int{200, 503} {
		responses[int64(status)] = fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: 128\r\n\r\n%s",
			status, http.StatusText(status), strings.Repeat("x", 128))
	}
	for r := bufio.NewReader(c); ; {
		if err := skipHeader(r); err != nil {
			return
		}
		u.requests.Add(1)
		if _, err := c.Write(responses[u.status.Load()]); err != nil {
			return
		}
	}
}

// skipHeader reads up to and including the empty line.
func skipHeader(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			return nil
		}
	}
}

// loadFlat sends requests over n connections, each as fast as its responses come, and
// returns how long each completed one took.
func loadFlat(ctx context.Context, addr string, n int, d time.Duration) ([]time.Duration, error) {
	var (
		mu   sync.Mutex
		all  []time.Duration
		errs []error
		wg   sync.WaitGroup
	)
	end := time.Now().Add(d)
	for range n {
		wg.Go(func() {
			took, err := client(ctx, addr, end)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if len(all) == 0 {
		errs = append(errs, errors.New("no request was completed"))
	}
	return all, errors.Join(errs...)
}

func client(ctx context.Context, addr string, end time.Time) (took []time.Duration, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(end.Add(10 * time.Second))
	request := []byte("GET /v1/orders/4711 HTTP/1.1\r\nHost: " + addr + "\r\nAccept: */*\r\n\r\n")
	for r := bufio.NewReader(c); time.Now().Before(end) && ctx.Err() == nil; {
		begun := time.Now()
		if _, err := c.Write(request); err != nil {
			return took, err
		}
		if err := skipResponse(r); err != nil {
			return took, err
		}
		took = append(took, time.Since(begun))
	}
	return took, ctx.Err()
}

// skipResponse reads one response, whose length must be declared or chunked.
func skipResponse(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(line), "HTTP/1.1 ") {
		return fmt.Errorf("not a response: %q", line)
	}
	length, chunked := 0, false
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := strings.Cut(string(line), ":")
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Content-Length":
			if _, err := fmt.Sscan(value, &length); err != nil {
				return err
			}
		case "Transfer-Encoding":
			chunked = true
		}
	}
	if chunked {
		return errors.New("a chunked response to a request of declared length")
	}
	_, err = r.Discard(length)
	return err
}
