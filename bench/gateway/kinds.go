package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file holds the rows that are more than a load of small calls.

// orders is the load of POSTs, counted at the receiver by what they said.
func (t *trial) orders() (tally, error) {
	seen := t.row.load.run(t.ctx, t.addr, t.lasts, true)
	t.up.mu.Lock()
	defer t.up.mu.Unlock()
	duplicates, again := 0, 0
	for _, a := range t.up.bodies {
		duplicates += a.again
		again += a.sends - 1 - a.again
	}
	t.extra["duplicates"], t.extra["sent_again_with_key"] = float64(duplicates), float64(again)
	return seen, nil
}

const (
	uploaders = 20
	trickle   = 50 << 10 // bytes a second
)

// uploads is a load of ordinary calls beside slow uploads.
func (t *trial) uploads() (tally, error) {
	size := 1 << 20
	if t.quick {
		size >>= 2
	}
	var (
		mu   sync.Mutex
		done int
		wg   sync.WaitGroup
		saw  = map[string]int{}
	)
	for i := range uploaders {
		wg.Go(func() {
			what := upload(t.addr, "upload-"+strconv.Itoa(i), size)
			mu.Lock()
			defer mu.Unlock()
			if saw[what]++; what == "200" {
				done++
			}
		})
	}
	seen := load{callers: 50, every: 200 * time.Millisecond}.run(t.ctx, t.addr, t.lasts, true)
	wg.Wait()
	t.extra["uploads"], t.extra["uploads_done"] = uploaders, float64(done)
	for what, n := range saw {
		t.extra["uploads_"+what] = float64(n)
	}
	return seen, nil
}

// upload sends a body slowly, and returns what came of it. It is no call of the
// row: ordinary ones are what is counted.
func upload(addr, id string, size int) string {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return ended(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Duration(size/trickle)*time.Second + patience))
	if _, err := fmt.Fprintf(c, "PUT /v1/files/%s HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n", id, size); err != nil {
		return ended(err)
	}
	const pieces = 10 // a second
	for left, piece := size, make([]byte, trickle/pieces); left > 0; left -= len(piece) {
		if _, err := c.Write(piece[:min(len(piece), left)]); err != nil {
			break // the response may say why
		}
		time.Sleep(time.Second / pieces)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return ended(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return strconv.Itoa(resp.StatusCode)
}

const watchers = 20

// watches is a number of streams with a silence in the middle. Good are those that
// came through, and the times are those of the whole stream.
func (t *trial) watches() (tally, error) {
	var (
		mu    sync.Mutex
		sum   tally
		first []time.Duration
		wg    sync.WaitGroup
	)
	for i := range watchers {
		wg.Go(func() {
			began := time.Now()
			event, what := watch(t.addr, "watch-"+strconv.Itoa(i), t.lasts)
			mu.Lock()
			defer mu.Unlock()
			one := tally{took: []time.Duration{time.Since(began)}, seen: map[string]int{what: 1}}
			if what == whole {
				one.good = 1
			}
			sum.add(one)
			first = append(first, event)
		})
	}
	wg.Wait()
	t.extra["first_event_p99_ms"] = quantile(first, 99)
	return sum, nil
}

// whole is a stream that came through.
const whole = "whole"

// watch reads a stream, and returns when its first line came and what came of it.
func watch(addr, id string, silence time.Duration) (first time.Duration, what string) {
	began := time.Now()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return 0, ended(err)
	}
	defer c.Close()
	_ = c.SetDeadline(began.Add(silence + patience))
	if _, err := c.Write(get("bench", id)); err != nil {
		return 0, ended(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ended(err)
	}
	if resp.StatusCode != http.StatusOK {
		return 0, strconv.Itoa(resp.StatusCode)
	}
	in := bufio.NewReader(resp.Body)
	if _, err = in.ReadString('\n'); err != nil {
		return 0, "cut before the first event"
	}
	first = time.Since(began)
	rest, err := io.ReadAll(in)
	switch {
	case err == nil && strings.HasSuffix(string(rest), last):
		return first, whole
	case errors.Is(err, io.ErrUnexpectedEOF), err != nil:
		return first, "broken off"
	}
	return first, "ended as if complete"
}
