package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// keys makes keys as long as a UUID, no two of them alike in this process.
var keys atomic.Int64

func freshKey(b []byte) { copy(b, fmt.Sprintf("%08x-0000-4000-8000-000000000000", keys.Add(1))) }

const payload = `{"amount":100,"currency":"USD"}`

// request returns a POST and where its key is.
func request(addr string) (text, key []byte) {
	head := "POST /pay HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(payload)) + "\r\nIdempotency-Key: "
	text = []byte(head + strings.Repeat("x", 36) + "\r\n\r\n" + payload)
	key = text[len(head) : len(head)+36]
	freshKey(key)
	return text, key
}

// parallel runs f n times at once and joins what they measured.
func parallel(n int, f func() ([]time.Duration, error)) ([]time.Duration, error) {
	var (
		mu   sync.Mutex
		all  []time.Duration
		errs []error
		wg   sync.WaitGroup
	)
	for range n {
		wg.Go(func() {
			took, err := f()
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, took...), append(errs, err)
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

// post sends requests over n connections, each as fast as its responses come:
// every one with a key of its own, or all of a connection with one.
func post(ctx context.Context, addr string, n int, end time.Time, fresh bool) ([]time.Duration, error) {
	return parallel(n, func() (took []time.Duration, err error) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		_ = c.SetDeadline(end.Add(10 * time.Second))
		text, key := request(addr)
		r := bufio.NewReader(c)
		for begun := time.Now(); len(took) == 0 || begun.Before(end) && ctx.Err() == nil; begun = time.Now() {
			if _, err := c.Write(text); err != nil {
				return took, err
			}
			if err := readResponse(r); err != nil {
				return took, err
			}
			took = append(took, time.Since(begun))
			if fresh {
				freshKey(key)
			}
		}
		return took, nil
	})
}

// readResponse reads one response, which must be a 201 of declared length.
func readResponse(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 201 ")) {
		return fmt.Errorf("not a 201: %q", line)
	}
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("a response without a length")
	}
	_, err = r.Discard(length)
	return err
}

// profile begins a CPU profile of a contender's first round.
func profile(dir, name string, round int) (stop func(), err error) {
	if dir == "" || round > 0 {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(dir, strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' || r == '*' || r == ',' {
			return '-'
		}
		return r
	}, name)+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}
