package smuggling

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// probe is one case: what a caller sends, what the upstream replies, and what
// must become of both.
type probe struct {
	name string
	// send are the caller's bytes. They end with the request unless half is set.
	send string
	// half says that the caller ends its side of the connection after send.
	half bool
	// replies are the upstream's, in turn; the last of them is [fine] for ever.
	replies []string
	want    verdict
	why     string // the rule
	// shown stands for send in the page, where that is too long.
	shown string
}

// verdict is what must come of a probe.
type verdict struct {
	// status are those of the responses, interim ones included. None at all
	// leaves open whether the caller gets one, and which.
	status []int
	// conn is what becomes of the caller's connection.
	conn conn
	// broken says that the last response must not look complete.
	broken bool
	// requests are what the upstream has got, whole, and nothing else.
	requests []request
	// fields, trailer and body are of the last response: see fieldsOf.
	fields, trailer []string
	body            *string
}

// request is what the upstream must have got.
type request struct {
	line            string
	fields, trailer []string // see fieldsOf
	body            string
}

// conn is the state of the caller's connection after a probe.
type conn int

const (
	kept   conn = iota // a further request on it is served
	closed             // nothing more comes
	either             // the one or the other
)

// A way is how the bytes of a probe reach the gateway. The verdict is the same.
type way struct {
	name     string
	oneByOne bool // each read gives the gateway one byte: see step
	after    bool // another request has been served on the connection before
	behind   bool // the probe is written together with another request before it
}

var ways = []way{
	{name: "at once"},
	{name: "byte by byte", oneByOne: true},
	{name: "kept alive", after: true},
	{name: "pipelined", behind: true},
	{name: "pipelined byte by byte", oneByOne: true, behind: true},
}

const (
	firstRequest = "GET /up/first HTTP/1.1\r\nHost: gateway.test\r\n\r\n"
	againRequest = "GET /up/again HTTP/1.1\r\nHost: gateway.test\r\n\r\n"
)

// run sends the probe one way and reports what is not as it must be.
func (p *probe) run(t *testing.T, w way) {
	s := newSite(t, slices.Clone(p.replies))
	address, end := newGateway(t, s, p.step(w))
	c := dial(t, address)
	p.exchange(t, c, w)
	_ = c.Close()
	end()
	s.end()
	p.received(t, s)
}

// step returns how much the gateway reads at once. Of what is long it gets more than
// a byte, an odd number of them.
func (p *probe) step(w way) int {
	switch {
	case !w.oneByOne:
		return 0
	case len(p.send) > 16<<10:
		return 1021
	default:
		return 1
	}
}

// exchange sends the probe and judges the caller's side.
func (p *probe) exchange(t *testing.T, c *caller, w way) {
	if w.after || w.behind {
		text := firstRequest
		if w.behind {
			text += p.send
		}
		c.send(text)
	}
	if w.after || w.behind {
		if m, err := c.read("GET"); err != nil || m.status() != 200 {
			t.Errorf("the request before: %v, %v", m.head, err)
			return
		}
	}
	if !w.behind {
		c.send(p.send)
	}
	if p.half {
		_ = c.Conn.(interface{ CloseWrite() error }).CloseWrite()
	}
	if p.responses(t, c) {
		p.after(t, c)
	}
}

// responses judges what the caller gets, and reports whether it is as it must be.
func (p *probe) responses(t *testing.T, c *caller) bool {
	var last message
	for i, want := range p.want.status {
		method := methodOf(p.send)
		if len(p.want.requests) == 0 {
			method = "GET" // what is refused as a whole has no method
		}
		m, err := c.read(method)
		broken := p.want.broken && i == len(p.want.status)-1
		switch {
		case m.status() != want:
			t.Errorf("response %d: got %q (%v), want %d", i+1, strings.Join(m.head, " | "), err, want)
			return false
		case broken && err == nil:
			t.Errorf("response %d looks complete: %q", i+1, m.body)
		case !broken && err != nil:
			t.Errorf("response %d: %v", i+1, err)
			return false
		}
		last = m
	}
	for _, fault := range missing(last.head, p.want.fields) {
		t.Errorf("response: %s", fault)
	}
	for _, fault := range missing(append([]string{""}, last.trailer...), p.want.trailer) {
		t.Errorf("response's trailer: %s", fault)
	}
	if p.want.body != nil && last.body != *p.want.body {
		t.Errorf("response's body is %q, want %q", last.body, *p.want.body)
	}
	return true
}

// after judges what becomes of the connection.
func (p *probe) after(t *testing.T, c *caller) {
	switch {
	case p.want.conn == closed:
		text, over := c.rest()
		if !over {
			t.Error("the connection is open, want it closed")
		}
		if len(p.want.status) > 0 && text != "" {
			t.Errorf("more than the responses: %q", text)
		}
	case p.want.conn == kept:
		c.send(againRequest)
		m, err := c.read("GET")
		if err != nil || m.status() != 200 || m.body != "fine" {
			t.Errorf("the request after: %v, %q, %q", err, m.head, m.body)
		}
	}
}

// received judges the upstream's side.
func (p *probe) received(t *testing.T, s *site) {
	if s.strict != nil {
		t.Errorf("the upstream was sent what is %v", s.strict)
	}
	var own []message
	for _, m := range s.requests {
		if !around(m) {
			own = append(own, m)
		}
	}
	if len(own) != len(p.want.requests) {
		t.Errorf("the upstream got %d whole requests, want %d: %s", len(own), len(p.want.requests), lines(own))
		return
	}
	for i, want := range p.want.requests {
		got := own[i]
		if got.head[0] != want.line {
			t.Errorf("the upstream got %q, want %q", got.head[0], want.line)
		}
		for _, fault := range missing(got.head, want.fields) {
			t.Errorf("the upstream's request: %s", fault)
		}
		for _, fault := range missing(append([]string{""}, got.trailer...), want.trailer) {
			t.Errorf("the upstream's trailer: %s", fault)
		}
		if got.body != want.body {
			t.Errorf("the upstream got the body %q, want %q", got.body, want.body)
		}
	}
}

// missing compares the fields of a message with those wanted. "Name: value" must
// be there as it is, "Name: va…" as far as the dots, and in the order wanted where
// a name repeats; "-Name" must not be there at all.
func missing(head, wanted []string) (faults []string) {
	m := message{head: head}
	used := map[string]int{}
	for _, want := range wanted {
		if name, ok := strings.CutPrefix(want, "-"); ok {
			if got := m.all(name); len(got) > 0 {
				faults = append(faults, fmt.Sprintf("has %s: %q", name, got))
			}
			continue
		}
		name, value, _ := strings.Cut(want, ": ")
		got := m.all(name)
		i := used[name]
		used[name]++
		start, open := strings.CutSuffix(value, "…")
		if i >= len(got) || got[i] != value && !(open && strings.HasPrefix(got[i], start)) {
			faults = append(faults, fmt.Sprintf("%s is %q, want %q", name, got, value))
		}
	}
	for name, n := range used {
		if got := m.all(name); len(got) > n {
			faults = append(faults, fmt.Sprintf("%s is there %d times, want %d: %q", name, len(got), n, got))
		}
	}
	return faults
}

// lines returns the first lines of messages.
func lines(ms []message) string {
	var all []string
	for _, m := range ms {
		all = append(all, fmt.Sprintf("%q with %q", m.head[0], m.body))
	}
	return strings.Join(all, ", ")
}
