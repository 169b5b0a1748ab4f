package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// load is a number of callers, each of which starts a call every so often. One
// that took longer is followed by the next at once: callers wait, as most clients
// do.
type load struct {
	callers int
	every   time.Duration
	// request returns the bytes of a call, by its number; nil sends GETs.
	request func(id string) []byte
}

// patience is how long a caller waits for a response, or for its next byte.
const patience = 15 * time.Second

// tally is what a number of calls came to.
type tally struct {
	took []time.Duration // of all calls, good or bad
	good int
	late int            // of the good, those that ended after the row
	seen map[string]int // what the callers saw: a status, or how the connection ended
	lag  []time.Duration
}

func (t *tally) add(o tally) {
	t.took, t.lag = append(t.took, o.took...), append(t.lag, o.lag...)
	t.good += o.good
	t.late += o.late
	if t.seen == nil {
		t.seen = map[string]int{}
	}
	for what, n := range o.seen {
		t.seen[what] += n
	}
}

// run calls addr until the time is over, and returns when the last call has ended.
// Calls are marked as measured, or not.
func (l load) run(ctx context.Context, addr string, lasts time.Duration, measured bool) tally {
	var (
		mu  sync.Mutex
		sum tally
		wg  sync.WaitGroup
	)
	end := time.Now().Add(lasts)
	for i := range l.callers {
		wg.Go(func() {
			c := &caller{addr: addr, load: l, id: i, measured: measured, tally: tally{seen: map[string]int{}}}
			c.run(ctx, end)
			mu.Lock()
			defer mu.Unlock()
			sum.add(c.tally)
		})
	}
	wg.Wait()
	return sum
}

// caller is one of them, with a connection that it keeps as long as it can.
type caller struct {
	load
	tally
	addr     string
	id       int
	measured bool
	conn     net.Conn
	in       *bufio.Reader
}

func (c *caller) run(ctx context.Context, end time.Time) {
	defer c.drop()
	next := time.Now().Add(time.Duration(rand.Float64() * float64(c.every)))
	for n := 0; ctx.Err() == nil; n++ {
		if wait := time.Until(next); wait > 0 {
			time.Sleep(wait)
			c.lag = append(c.lag, time.Since(next))
		} else {
			next = time.Now()
		}
		began := time.Now()
		if !began.Before(end) {
			return
		}
		next = next.Add(c.every)
		what := c.call(strconv.Itoa(c.id) + "-" + strconv.Itoa(n))
		c.took = append(c.took, time.Since(began))
		c.seen[what]++
		if what != "200" {
			continue
		}
		if c.good++; time.Now().After(end) {
			c.late++
		}
	}
}

func (c *caller) drop() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// call makes one call and says what came of it.
func (c *caller) call(id string) string {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, patience)
		if err != nil {
			return ended(err)
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	if _, err := c.conn.Write(c.bytes(id)); err != nil {
		c.drop()
		return ended(err)
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil {
		c.drop()
		return ended(err)
	}
	if resp.Close {
		c.drop()
	}
	return strconv.Itoa(resp.StatusCode)
}

func (c *caller) bytes(id string) []byte {
	switch {
	case !c.measured:
		return get(c.addr, "")
	case c.request != nil:
		return c.request(id)
	}
	return get(c.addr, id)
}

// get returns a GET, which counts as one of the row when it has an id.
func get(host, id string) []byte {
	if id != "" {
		id = callHeader + ": " + id + "\r\n"
	}
	return fmt.Appendf(nil, "GET /v1/orders/4711 HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\n%s\r\n", host, id)
}

// post returns a POST whose body is like no other's.
func post(id string, keyed bool) []byte {
	key := ""
	if keyed {
		key = fmt.Sprintf("Idempotency-Key: bench-key-of-call-%s\r\n", id)
	}
	body := fmt.Sprintf(`{"order":"%s"}`, id)
	return fmt.Appendf(nil, "POST /v1/orders HTTP/1.1\r\nHost: bench\r\n%s: %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		callHeader, id, key, len(body), body)
}

// ended says how a call ended that had no whole response.
func ended(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "nothing in " + patience.String()
	}
	return "broken off"
}
