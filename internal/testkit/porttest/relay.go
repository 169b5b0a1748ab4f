package porttest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Relay is an address that leads to one server after the other, as the name of a database
// does in a failover. It is safe for concurrent use.
type Relay struct {
	l  net.Listener
	mu sync.Mutex
	up sync.RWMutex // held for writing while nothing passes
	to string
	on map[net.Conn]bool // both ends of what is open, and whether it passes anything on
}

// NewRelay starts a relay to an address; it ends with the test.
func NewRelay(t testing.TB, to string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{l: l, to: to, on: map[net.Conn]bool{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { r.carry(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.Lead("")
		r.Cut()
		ended.Wait()
	})
	return r
}

// Lead has new connections lead to another address; to "" they are closed at once. Those
// that are open stay where they are.
func (r *Relay) Lead(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// Cut closes all connections that are open.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.on {
		_ = c.Close()
	}
}

// Freeze lets nothing pass, and closes nothing either, as a machine does that has stopped;
// thaw ends that.
func (r *Relay) Freeze() (thaw func()) {
	r.up.Lock()
	return sync.OnceFunc(r.up.Unlock)
}

// Forget makes the open connections silent permanently, as a firewall does that has
// forgotten them: what is written is taken, and goes nowhere. It returns how many there
// were; new ones work.
func (r *Relay) Forget() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.on {
		r.on[c] = false
	}
	return len(r.on) / 2
}

func (r *Relay) passes(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on[c]
}

// passing writes to a connection, unless nothing passes.
type passing struct {
	r *Relay
	net.Conn
}

func (p passing) Write(b []byte) (int, error) {
	p.r.up.RLock()
	defer p.r.up.RUnlock()
	if !p.r.passes(p.Conn) {
		return len(b), nil
	}
	return p.Conn.Write(b)
}

// Address returns where the relay listens.
func (r *Relay) Address() string { return r.l.Addr().String() }

// URL returns the URL of a server, such as a database, with the relay's address in it.
func (r *Relay) URL(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err)
	}
	u.Host = r.Address()
	return u.String()
}

// Away closes all connections, and new ones at once, until back is called: to its clients
// the server is gone.
func (r *Relay) Away() (back func()) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	r.Lead("")
	r.Cut()
	return sync.OnceFunc(func() { r.Lead(to) })
}

// carry copies both ways until one end closes.
func (r *Relay) carry(client net.Conn) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	r.mu.Lock()
	r.on[client], r.on[server] = true, true
	if r.to != to { // it was cut meanwhile, perhaps
		_ = client.Close()
	}
	r.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(passing{r, way[0]}, way[1])
			_ = client.Close()
			_ = server.Close()
		})
	}
	both.Wait()
	r.mu.Lock()
	delete(r.on, client)
	delete(r.on, server)
	r.mu.Unlock()
}
