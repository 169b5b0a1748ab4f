package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sent is one request as the upstream sees it.
type sent struct {
	n  int           // counts the requests of the row, from 0
	at time.Duration // since the row began
	r  *http.Request
}

// reply is what the upstream does about it. The zero value is a 200 at once.
type reply struct {
	status int
	after  time.Duration
	header string // more lines, each with its end
	hangup bool   // closes the connection before the first byte
	cut    bool   // closes it in the middle of the header
	hang   bool   // never responds
	// stream, where set, writes the body; without it there are 128 bytes.
	stream func(w io.Writer)
}

// script says what the upstream does. It is asked for one request at a time.
type script func(sent) reply

// scripted is an upstream that follows a script once its row has begun, and until
// then responds with 200 to everything. Requests with a callHeader count.
type scripted struct {
	addr  string
	began time.Time // set before the first counted request

	mu     sync.Mutex
	l      net.Listener // nil while connections are refused
	conns  map[net.Conn]bool
	script script
	sends  int
	bodies map[string]*arrivals // of small bodies
	closed bool
}

// arrivals are the sends of one content.
type arrivals struct {
	sends, again int    // again: further ones that were not safe
	key          string // of the first
}

// callHeader marks the requests of calls that are measured.
const callHeader = "X-Call"

func newScripted() (*scripted, error) {
	u := &scripted{addr: "127.0.0.1:0", conns: map[net.Conn]bool{}, bodies: map[string]*arrivals{}}
	return u, u.listen()
}

// listen takes connections, at the same address as before. Another socket of the
// machine may have borrowed the port for a moment.
func (u *scripted) listen() (err error) {
	var l net.Listener
	for range 50 {
		if l, err = net.Listen("tcp", u.addr); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return l.Close()
	}
	u.addr, u.l = l.Addr().String(), l
	go u.serve(l)
	return nil
}

// refuse closes the port and every connection.
func (u *scripted) refuse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.l != nil {
		_ = u.l.Close()
		u.l = nil
	}
	for c := range u.conns {
		_ = c.Close()
	}
}

func (u *scripted) close() {
	u.refuse()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
}

// begin puts the script in charge.
func (u *scripted) begin(s script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.began, u.script = time.Now(), s
}

func (u *scripted) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		u.conns[c] = true
		if u.l != l { // refused in between
			_ = c.Close()
		}
		u.mu.Unlock()
		go func() {
			u.exchange(c)
			_ = c.Close()
			u.mu.Lock()
			delete(u.conns, c)
			u.mu.Unlock()
		}()
	}
}

// exchange serves the requests of one connection.
func (u *scripted) exchange(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := received(r)
		if err != nil {
			return
		}
		if err := u.reply(r, body).write(c, in); err != nil {
			return
		}
	}
}

// received reads a body to its end and returns it, or "" for a large one. Where
// the declared length does not come it is an error.
func received(r *http.Request) (string, error) {
	if r.ContentLength >= 0 && r.ContentLength <= 1024 {
		body, err := io.ReadAll(r.Body)
		return string(body), err
	}
	_, err := io.Copy(io.Discard, r.Body)
	return "", err
}

func (u *scripted) reply(r *http.Request, body string) reply {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.script == nil || r.Header.Get(callHeader) == "" {
		return reply{}
	}
	if body != "" {
		u.arrived(body, r.Header.Get("Idempotency-Key"))
	}
	u.sends++
	return u.script(sent{n: u.sends - 1, at: time.Since(u.began), r: r})
}

// arrived counts a content. What comes again is safe under the key of the first
// time only.
func (u *scripted) arrived(body, key string) {
	a := u.bodies[body]
	if a == nil {
		a = &arrivals{key: key}
		u.bodies[body] = a
	} else if key == "" || key != a.key {
		a.again++
	}
	a.sends++
}

var (
	errHangUp = errors.New("hung up, as the script says")
	payload   = strings.Repeat("x", 128)
)

// write does what the reply says. An error ends the connection.
func (p reply) write(c net.Conn, in *bufio.Reader) error {
	switch {
	case p.hangup:
		return errHangUp
	case p.hang:
		_, err := in.Peek(1) // until the other side gives up
		return err
	}
	if p.after > 0 {
		time.Sleep(p.after)
	}
	if p.status == 0 {
		p.status = http.StatusOK
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\n%s", p.status, http.StatusText(p.status), p.header)
	switch {
	case p.cut:
		_, _ = io.WriteString(c, head+"Content-Ty")
		return errHangUp
	case p.stream != nil:
		if _, err := io.WriteString(c, head+"Connection: close\r\n\r\n"); err != nil {
			return err
		}
		p.stream(c)
		return errHangUp
	}
	_, err := io.WriteString(c, head+"Content-Type: text/plain\r\nContent-Length: 128\r\n\r\n"+payload)
	return err
}
