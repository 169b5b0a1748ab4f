package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// producer posts messages on one connection. It writes a request that is made
// once, and reads of a response what it must: on two processors what the callers
// cost is taken from those who are measured.
type producer struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
}

func newProducer(addr string) (*producer, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`{"endpoint":"a","payload":%q}`, body)
	request := fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", addr, len(text), text)
	return &producer{conn, bufio.NewReader(conn), []byte(request)}, nil
}

// post posts one message, which must be accepted.
func (p *producer) post() error {
	if _, err := p.conn.Write(p.request); err != nil {
		return err
	}
	status, err := p.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	accepted := bytes.HasPrefix(status, []byte("HTTP/1.1 202 "))
	length := 0
	for {
		line, err := p.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if n, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(n))); err != nil {
				return err
			}
		}
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(p.r, text); err != nil {
		return err
	}
	if !accepted {
		return fmt.Errorf("a message was not accepted: %s", text)
	}
	return nil
}

// produce lets the callers, spread over the instances, post until ctx ends: one
// after the other, or at a rate in all. It returns how long each call took,
// counted from when it was due.
func (f *fleet) produce(ctx context.Context, callers int, rate float64) ([]time.Duration, error) {
	took := make([][]time.Duration, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range callers {
		p, err := newProducer(f.instances[i%len(f.instances)].addr)
		if err != nil {
			return nil, err
		}
		wg.Go(func() {
			defer func() { _ = p.conn.Close() }()
			for n := 0; ctx.Err() == nil && errs[i] == nil; n++ {
				due := time.Now()
				if rate > 0 {
					due = began.Add(time.Duration(float64(n*callers+i) / rate * float64(time.Second)))
					time.Sleep(time.Until(due))
				}
				errs[i] = p.post()
				took[i] = append(took[i], time.Since(due))
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	return all, errors.Join(errs...)
}
