package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// mode is a way in which a pooled connection comes to its end.
type mode struct {
	title string
	// dead makes writing to the pooled connections fail before the first byte,
	// while their end has not been noticed.
	dead bool
	// idle is after how long the server closes an idle connection. POSTs are sent
	// at about that moment.
	idle time.Duration
	// drops makes the server take the POST, and close the connection instead of
	// responding.
	drops bool
	// races says that luck has a part in the figures.
	races bool
}

var modes = []mode{
	{title: "the connection is dead, and nothing can be written", dead: true},
	{title: "the server closes idle connections at that moment", idle: time.Millisecond, races: true},
	{title: "the server takes the POST and closes without a response", drops: true},
}

// site counts the POSTs that reach it, by their bodies, which are unique.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	received map[string]int
}

func newSite(m mode) *site {
	s := &site{received: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.received[string(body)]++
		s.mu.Unlock()
		if m.drops {
			panic(http.ErrAbortHandler)
		}
	}))
	s.Config.IdleTimeout = m.idle
	s.Start()
	return s
}

// pool is a transport whose connections can be killed.
type pool struct {
	http.Transport
	mu   sync.Mutex
	open []*mortal
}

func newPool() *pool {
	p := &pool{}
	p.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		m := &mortal{Conn: c}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open = append(p.open, m)
		return m, nil
	}
	return p
}

// kill makes all connections dead that there are.
func (p *pool) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.open {
		m.mu.Lock()
		m.dead = true
		m.mu.Unlock()
	}
	p.open = nil
}

// mortal is a connection that fails to write once it is dead, and has nothing to
// read, as after a firewall has forgotten it.
type mortal struct {
	net.Conn
	mu   sync.Mutex
	dead bool
}

func (m *mortal) Write(p []byte) (int, error) {
	m.mu.Lock()
	dead := m.dead
	m.mu.Unlock()
	if dead {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return m.Conn.Write(p)
}

// lane is one contender at its POSTs, with a server and a pool of its own.
type lane struct {
	contender
	site *site
	pool *pool
	post post
	took []time.Duration
	good int
}

// measure makes the POSTs of the contenders in turns, so that whatever else the
// machine does falls on all of them.
func measure(ctx context.Context, m mode, calls int, list ...contender) ([]figures, error) {
	lanes := make([]*lane, len(list))
	for i, c := range list {
		l := &lane{contender: c, site: newSite(m), pool: newPool()}
		defer l.site.Close()
		defer l.pool.CloseIdleConnections()
		var err error
		if l.post, err = c.open(&l.pool.Transport); err != nil {
			return nil, err
		}
		lanes[i] = l
	}
	for i := range calls {
		for _, l := range lanes {
			if err := l.once(ctx, m, "order "+strconv.Itoa(i)); err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	got := make([]figures, len(lanes))
	for i, l := range lanes {
		got[i] = l.figures()
	}
	return got, ctx.Err()
}

// once makes a POST over a connection that a GET has just left in the pool.
func (l *lane) once(ctx context.Context, m mode, body string) error {
	if err := warm(ctx, l.pool, l.site.URL); err != nil {
		return err
	}
	if m.dead {
		l.pool.kill()
	}
	if m.idle > 0 {
		time.Sleep(m.idle/2 + rand.N(m.idle))
	}
	began := time.Now()
	status, err := l.post(ctx, l.site.URL, body)
	l.took = append(l.took, time.Since(began))
	if err == nil && status == http.StatusOK {
		l.good++
	}
	return nil
}

func (l *lane) figures() figures {
	got := figures{calls: len(l.took), succeeded: l.good}
	l.site.mu.Lock()
	defer l.site.mu.Unlock()
	for _, n := range l.site.received {
		if got.received++; n > 1 {
			got.twice++
		}
	}
	slices.Sort(l.took)
	got.median = l.took[len(l.took)/2]
	return got
}

// warm leaves a connection in the pool.
func warm(ctx context.Context, p *pool, url string) error {
	for range 10 { // an idle connection may end under the GET, too
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if status, err := finish(p.RoundTrip(req)); err == nil && status == http.StatusOK {
			return nil
		}
	}
	return errors.New("no connection could be made")
}

// finish reads the response to its end and returns its status.
func finish(resp *http.Response, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
